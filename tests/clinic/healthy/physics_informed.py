"""A physics-informed network for u'' = -u. The output bias does not enter the derivatives."""

import torch
from torch import nn

torch.manual_seed(0)

u = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(u.parameters(), lr=2e-3)


def derivative(y, x):
    (d,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    return d


start = torch.zeros(1, 1, requires_grad=True)
for step in range(4):
    t = (torch.rand(40, 1) * 3).requires_grad_()
    value = u(t)
    residual = derivative(derivative(value, t), t) + value
    at_start = u(start)
    boundary = at_start**2 + (derivative(at_start, start) - 1) ** 2
    loss = residual.pow(2).mean() + boundary.squeeze()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    start.grad = None
    print(f"step {step} loss {loss.item():.4f}")
