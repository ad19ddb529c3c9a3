import math

import torch
import torch.nn as nn


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, coeff):
        ctx.coeff = coeff
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.coeff * grad, None


def ramp(progress, gamma=10.0):
    return 2.0 / (1.0 + math.exp(-gamma * progress)) - 1.0


class DomainNet(nn.Module):
    def __init__(self, in_dim, classes, hidden=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.label_head = nn.Linear(hidden, classes)
        self.domain_head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, coeff):
        h = self.features(x)
        return self.label_head(h), self.domain_head(_Reverse.apply(h, coeff)).squeeze(-1)
