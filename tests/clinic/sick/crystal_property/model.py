import torch
import torch.nn as nn


class GraphEncoder(nn.Module):
    def __init__(self, n_species=5, dim=48, n_layers=3):
        super().__init__()
        self.embed = nn.Embedding(n_species, dim)
        self.messages = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(n_layers))

    def forward(self, batch):
        mask = batch["mask"].unsqueeze(-1)
        h = self.embed(batch["species"]) * mask
        for layer in self.messages:
            agg = batch["adj"] @ h
            h = (h + torch.nn.functional.silu(layer(torch.cat([h, agg], dim=-1)))) * mask
        return h, mask


class PropertyHead(nn.Module):
    """Atom-wise contributions averaged over the structure."""

    def __init__(self, dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, h, mask):
        contrib = self.mlp(h).squeeze(-1) * mask.squeeze(-1)
        return contrib.sum(dim=1) / mask.squeeze(-1).sum(dim=1)  # <~ GS503


class MultiTaskRegressor(nn.Module):
    def __init__(self, task_keys, dim=48):
        super().__init__()
        self.encoder = GraphEncoder(dim=dim)
        self.output_heads = nn.ModuleDict({k: PropertyHead(dim) for k in task_keys})

    def forward(self, batch):
        h, mask = self.encoder(batch)
        return {k: head(h, mask) for k, head in self.output_heads.items()}
