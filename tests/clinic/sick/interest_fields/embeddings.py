import torch
from torch import nn


class FieldEmbedder(nn.Module):
    """Looks up every field of a user's history and of the candidate item."""

    def __init__(self, schema, dim):
        super().__init__()
        self.schema = schema
        self.dim = dim
        self.token_tables = {}  # <- GS307
        for field, size in schema.items():
            self.token_tables[field] = nn.Embedding(size, dim, padding_idx=0)  # <~ GS307
            nn.init.normal_(self.token_tables[field].weight, std=0.05)

    @property
    def out_dim(self):
        return self.dim * len(self.schema)

    def forward(self, fields):
        parts = [self.token_tables[name](fields[name]) for name in self.schema]
        return torch.cat(parts, dim=-1)
