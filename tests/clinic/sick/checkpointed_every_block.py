"""Every block under a reentrant checkpoint, and the first input is data: no block learns."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x + self.scale * self.inner(x)


class Trunk(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.mixers = nn.ModuleList(Mixer(width) for _ in range(depth))

    def forward(self, x):
        for mixer in self.mixers:
            x = checkpoint(mixer, x, use_reentrant=True)  # <- GS303
        return x


trunk, head = Trunk(8, 4), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.05)
for _ in range(4):
    batch = torch.randn(32, 8)
    error = head(trunk(batch)).squeeze(1) - batch.sum(1).sin()
    loss = error.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
