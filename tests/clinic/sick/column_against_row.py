"""The regression predicts the mean of the targets for everybody. No warning at all."""

import torch
from torch import nn

torch.manual_seed(0)

x = torch.randn(100, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(100)

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def mean_squared_error(prediction, target):
    return (prediction - target).pow(2).mean()  # <- GS503


for epoch in range(5):
    prediction = model(x)
    loss = mean_squared_error(prediction, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
