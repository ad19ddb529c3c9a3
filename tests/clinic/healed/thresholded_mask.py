"""Healed. A soft gate carries the gradient."""

import torch
from torch import nn

torch.manual_seed(0)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(9, 9)
        self.value = nn.Linear(9, 9)
        self.head = nn.Linear(9, 1)

    def forward(self, x):
        openness = torch.sigmoid(self.gate(x))
        keep = openness
        return self.head(keep * self.value(x))


x = torch.randn(70, 9)
y = x[:, :1].relu() - x[:, 1:2].relu()
model = Gated()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(3):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
