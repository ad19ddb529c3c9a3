import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Projector(nn.Module):
    def __init__(self, channels=3, dim=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(channels, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(24, dim)

    def forward(self, x):
        return F.normalize(self.head(self.conv(x).mean((2, 3))), dim=1)


class MomentumPair(nn.Module):
    def __init__(self, momentum=0.95, size=128, dim=16):
        super().__init__()
        self.momentum = momentum
        self.query = Projector(dim=dim)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=1))
        self.head = 0

    @torch.no_grad()
    def update_key(self):
        for slow, fast in zip(self.key.parameters(), self.query.parameters()):
            slow.lerp_(fast, 1 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        self.queue[self.head : self.head + len(keys)] = keys
        self.head = (self.head + len(keys)) % len(self.queue)

    def forward(self, first, second):
        q = self.query(first)
        with torch.no_grad():
            k = self.key(second)
        return q, k
