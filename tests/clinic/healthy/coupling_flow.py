"""Normalizing flow whose couplings start at the identity."""

import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, d, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(d // 2, 32), nn.ReLU(), nn.Linear(32, d))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, -1)
        s = 2 * torch.tanh(s / 2)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], -1), s.sum(-1)


class Flow(nn.Module):
    def __init__(self, d=4, n=6):
        super().__init__()
        self.steps = nn.ModuleList(Coupling(d, i % 2 == 1) for i in range(n))
        self.log_scale = nn.Parameter(torch.zeros(d))

    def log_prob(self, x):
        total = self.log_scale.sum()
        z = x * self.log_scale.exp()
        for s in self.steps:
            z, ld = s(z)
            total = total + ld
        return total - 0.5 * z.pow(2).sum(-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi)


torch.manual_seed(0)
flow = Flow()
opt = torch.optim.Adam(flow.parameters(), 1e-3)
for _ in range(6):
    loss = -flow.log_prob(torch.randn(64, 4) * 2 + 1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
