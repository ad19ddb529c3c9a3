"""Self-conditioning: two forward passes in one autocast, the first without gradients."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
scale = nn.Parameter(torch.ones(8))
optimizer = torch.optim.Adam([*model.parameters(), scale], lr=1e-3)


def training_step(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            guess = model(x)
        out = model(x + guess)
        return (out * scale - x).float().pow(2).mean()


for step in range(3):
    loss = training_step(torch.randn(10, 8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), [p.grad is None for p in model.parameters()])
