"""Healed. The second normalisation is called where it belongs."""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.mix(self.norm1(x))
        return x + self.shrink(torch.relu(self.expand(self.norm2(x))))


model = nn.Sequential(Block(12), nn.Linear(12, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(30, 12), torch.randint(0, 3, (30,))
for step in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
