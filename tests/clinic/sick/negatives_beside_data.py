"""An energy model whose negatives are the data once more: a Langevin step that is far too short."""

import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)


def langevin(start, step_size):
    x = start.clone().requires_grad_()
    for _ in range(5):
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        noise = (2 * step_size) ** 0.5 * torch.randn_like(x)
        x = (x - step_size * slope + noise).detach().requires_grad_()
    return x.detach()


for step in range(4):
    data = torch.randn(256, 2) * 0.3 + torch.tensor([2.0, -1.0])
    negatives = langevin(data, step_size=1e-7)
    low = energy(data).mean()  # <- GS207
    high = energy(negatives).mean()
    loss = low - high
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
