"""Healed. Kaiming initialisation keeps the size of activations and gradients from layer to
layer.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def init(module):
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(module.bias)


class Tower(nn.Module):
    def __init__(self, width=48, depth=12):
        super().__init__()
        self.steps = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)
        self.apply(init)

    def forward(self, x):
        for layer in self.steps:
            x = F.leaky_relu(layer(x))
        return self.out(x)


x = torch.randn(32, 48)
y = torch.randn(32, 1)
model = Tower()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    loss = F.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.3e}")
