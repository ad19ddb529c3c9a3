"""Two losses are walked one after the other; the first call retains the graph on purpose."""

import torch
from torch import nn

torch.manual_seed(0)

trunk = nn.Sequential(nn.Linear(5, 16), nn.Tanh())
left, right = nn.Linear(16, 1), nn.Linear(16, 1)
modules = nn.ModuleList([trunk, left, right])
optimizer = torch.optim.SGD(modules.parameters(), lr=0.05)
x = torch.randn(36, 5)
a, b = x[:, :1], x[:, 1:2] ** 2

for step in range(4):
    optimizer.zero_grad()
    h = trunk(x)
    first = nn.functional.mse_loss(left(h), a)
    second = nn.functional.mse_loss(right(h), b)
    first.backward(retain_graph=True)
    share = trunk[0].weight.grad.norm().item()
    second.backward()
    optimizer.step()
    print(f"step {step} loss {first.item() + second.item():.4f} share {share:.4f}")
