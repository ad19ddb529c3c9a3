import torch
from torch import nn


class RiskModel(nn.Module):
    def __init__(self, n_features=10, hidden=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_features, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def make_hospital(shift, n=96, n_features=10):
    x = torch.randn(n, n_features) + shift
    y = (x[:, :3].sum(1) - x[:, 3] > 2 * shift).float()
    return x, y
