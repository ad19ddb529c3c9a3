"""Healed. The sum is a new tensor."""

import torch
from torch import nn

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        h = torch.tanh(self.inner(x))
        h = h + x
        return self.outer(h)


model = nn.Sequential(Residual(8), Residual(8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(30, 8), torch.randn(30, 1)
for step in range(3):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
