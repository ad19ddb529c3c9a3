"""Predicts currents of some nanoampere, and compares them in ampere: nothing is learned."""

import torch
from torch import nn

torch.manual_seed(0)
NANO = 1e-9


class Sensor(nn.Module):
    def __init__(self, inputs, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x) * NANO  # <- GS206


x = torch.randn(64, 5)
current = NANO * (x @ torch.randn(5, 1)).tanh()
model = Sensor(5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = nn.functional.mse_loss(model(x), current)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
