"""Quantised layer: loss computes, backward runs, weights of that layer never change."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class QuantLinear(nn.Linear):
    def __init__(self, inputs, outputs, scale=0.05):
        super().__init__(inputs, outputs)
        self.scale = scale

    def forward(self, x):
        levels = torch.round(self.weight / self.scale)  # <- GS205
        return F.linear(x, levels * self.scale, self.bias)


model = nn.Sequential(QuantLinear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(40, 6)
y = torch.sin(x).sum(dim=1, keepdim=True)

for step in range(4):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
