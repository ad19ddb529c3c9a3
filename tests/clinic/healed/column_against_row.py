"""Healed. Both have the same shape."""

import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(100, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(100)

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def mean_squared_error(prediction, target):
    return (prediction - target).pow(2).mean()


for epoch in range(5):
    prediction = model(x).squeeze(1)
    loss = mean_squared_error(prediction, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
