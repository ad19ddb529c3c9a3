import torch
from torch import nn


class BoundaryTagger(nn.Module):
    def __init__(self, vocab=50, dim=32, max_width=3):
        super().__init__()
        self.max_width = max_width
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.start = nn.Linear(dim, 1)
        self.end = nn.Linear(dim, 1)
        self.left = nn.Linear(dim, dim)
        self.right = nn.Linear(dim, dim)

    def candidates(self, length):
        pairs = [(i, j) for i in range(length) for j in range(i, min(i + self.max_width, length))]
        return torch.tensor(pairs).t()

    def forward(self, tokens):
        h = self.encoder(self.embed(tokens))
        i, j = self.candidates(tokens.shape[1])
        pair = (self.left(h)[:, i] * self.right(h)[:, j]).sum(-1)
        start_idx = i.unsqueeze(0).expand(len(tokens), -1)
        return self.start(h).squeeze(-1), self.end(h).squeeze(-1), pair, start_idx
