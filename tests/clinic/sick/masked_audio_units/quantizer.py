import torch
import torch.nn.functional as F
from torch import nn


class GumbelQuantizer(nn.Module):
    """Picks one entry of every codebook for each frame, with a straight-through choice."""

    def __init__(self, dim, groups=2, entries=8, out_dim=16, temperature=2.0):
        super().__init__()
        self.groups, self.entries = groups, entries
        self.temperature = temperature
        self.weight_proj = nn.Linear(dim, groups * entries)
        self.codebook = nn.Parameter(torch.rand(groups, entries, out_dim // groups))

    def forward(self, x):
        b, t, _ = x.shape
        logits = self.weight_proj(x).view(b * t, self.groups, self.entries)
        choice = F.gumbel_softmax(logits, tau=self.temperature, hard=True)
        codes = torch.einsum("ngk,gkd->ngd", choice, self.codebook).reshape(b, t, -1)
        usage = logits.softmax(dim=-1).mean(dim=0)
        entropy = -(usage * (usage + 1e-7).log()).sum()
        perplexity = torch.exp(-(usage * (usage + 1e-7).log()).sum(-1)).sum()
        return codes, entropy, perplexity.item()
