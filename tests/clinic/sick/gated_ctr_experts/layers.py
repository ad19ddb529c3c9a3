import torch
import torch.nn.functional as F
from torch import nn


class TopGate(nn.Module):
    """Chooses the experts that answer for a row, and how much each of them counts."""

    def __init__(self, dim, n_experts, k):
        super().__init__()
        self.k = k
        self.proj = nn.Linear(dim, n_experts, bias=False)

    def forward(self, x):
        logits = self.proj(x)
        top, index = logits.topk(min(self.k, logits.size(1)), dim=1)
        weights = F.softmax(top, dim=1)  # <- GS205
        return torch.zeros_like(logits).scatter(1, index, weights)


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return self.net(x)


class MixtureLayer(nn.Module):
    def __init__(self, dim, hidden, n_experts, k):
        super().__init__()
        self.gate = TopGate(dim, n_experts, k)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(n_experts))

    def forward(self, x):
        gates = self.gate(x)
        answers = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (gates.unsqueeze(-1) * answers).sum(dim=1), gates


class ClickModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.sites = nn.Embedding(cfg.n_sites, cfg.dim)
        self.ads = nn.Embedding(cfg.n_ads, cfg.dim)
        self.dense = nn.Linear(cfg.n_dense, cfg.dim)
        self.norm = nn.LayerNorm(cfg.dim)
        self.mixture = MixtureLayer(cfg.dim, cfg.hidden, cfg.n_experts, cfg.top_k)
        self.head = nn.Linear(cfg.dim, 1)

    def forward(self, dense, sites, ads):
        x = self.norm(self.dense(dense) + self.sites(sites) + self.ads(ads))
        mixed, gates = self.mixture(x)
        return self.head(x + mixed).squeeze(-1), gates
