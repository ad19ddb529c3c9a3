"""Headings by atan2 of velocities, some of which are exactly zero."""

import torch
from torch import nn

torch.manual_seed(0)


class Heading(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotate = nn.Parameter(torch.eye(2) + 0.1 * torch.randn(2, 2))

    def forward(self, velocity):
        vx, vy = (velocity @ self.rotate).unbind(dim=-1)
        return torch.atan2(vy, vx)


velocity = torch.randn(30, 2)
velocity[::6] = 0.0
heading = torch.atan2(velocity[:, 1], velocity[:, 0])
model = Heading()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(4):
    loss = (1 - torch.cos(model(velocity) - heading)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
