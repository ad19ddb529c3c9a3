import torch
import torch.nn as nn


class Dice(nn.Module):
    """Data-adaptive gate between the identity and a learned slope."""

    def __init__(self, size: int, eps: float = 1e-8):
        super().__init__()
        self.norm = nn.BatchNorm1d(size, eps=eps)
        self.alpha = torch.zeros(size)  # <- GS331

    def forward(self, x):
        gate = torch.sigmoid(self.norm(x))
        return gate * x + (1 - gate) * self.alpha * x


class HistoryAttention(nn.Module):
    def __init__(self, dim: int, width: int = 16):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(4 * dim, width), nn.PReLU(), nn.Linear(width, 1))

    def forward(self, item, history, mask):
        query = item[:, None].expand_as(history)
        parts = torch.cat([query, history, query - history, query * history], dim=-1)
        weight = self.score(parts).squeeze(-1).masked_fill(~mask, -1e9).softmax(dim=-1)
        return (weight[..., None] * history).sum(1)
