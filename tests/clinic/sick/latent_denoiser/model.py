import copy

import torch
from torch import nn


class VelocityNet(nn.Module):
    def __init__(self, dim, hidden=48):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, hidden), nn.SiLU())
        self.inp = nn.Linear(dim, hidden)
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.out = nn.Linear(hidden, dim)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for block in self.blocks:
            h = h + torch.nn.functional.silu(block(h))
        return self.out(h)


class Ema:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.model.parameters(), model.parameters()):
            slow.lerp_(fast, 1 - self.decay)
