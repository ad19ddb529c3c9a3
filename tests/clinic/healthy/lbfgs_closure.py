"""LBFGS with a closure, zero_grad inside."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 1)).double()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
x = torch.rand(60, 2, dtype=torch.float64)
y = torch.sin(3 * x[:, :1]) * x[:, 1:]


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(3):
    loss = optimizer.step(closure)
    print(f"step {step} loss {loss.item():.6f}")
