"""Fake quantisation with an observed range; rounding passes gradients straight through."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class FakeQuantise(nn.Module):
    def __init__(self, bits=4):
        super().__init__()
        self.levels = 2**bits - 1
        self.register_buffer("low", torch.tensor(0.0))
        self.register_buffer("high", torch.tensor(1.0))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.low.lerp_(x.min(), 0.1)
                self.high.lerp_(x.max(), 0.1)
        scale = (self.high - self.low) / self.levels
        inside = torch.minimum(torch.maximum(x, self.low), self.high)
        rounded = torch.round((inside - self.low) / scale) * scale + self.low
        return inside + (rounded - inside).detach()


model = nn.Sequential(
    nn.Linear(8, 24), nn.ReLU(), FakeQuantise(), nn.Linear(24, 24), nn.ReLU(), FakeQuantise()
)
head = nn.Linear(24, 3)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=3e-3)
x, y = torch.randn(60, 8), torch.randint(0, 3, (60,))
for step in range(5):
    loss = F.cross_entropy(head(model(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
