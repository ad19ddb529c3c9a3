"""Gradients are accumulated over four micro-batches, then one step is made."""

import torch
from torch import nn

torch.manual_seed(0)

ACCUMULATE = 4

model = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
x, y = torch.randn(96, 8), torch.randint(0, 2, (96,))
batches = list(zip(x.split(8), y.split(8), strict=True))

optimizer.zero_grad()
for epoch in range(2):
    running = 0.0
    for number, (xb, yb) in enumerate(batches, start=1):
        loss = nn.functional.cross_entropy(model(xb), yb) / ACCUMULATE
        loss.backward()
        running += loss.item()
        if number % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch} loss {running:.4f}")
