"""Activation checkpointing without re-entrance, first block included."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, width=12, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.head(x)


x, y = torch.randn(32, 12), torch.randint(0, 2, (32,))
model = Deep()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
