"""RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place
operation.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Positions(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(length, width) * 0.1)
        angles = torch.arange(length)[:, None] / 10 ** torch.linspace(0, 2, width // 2)
        self.table[:, 0::2] = torch.sin(angles)  # <- GS405
        self.table[:, 1::2] = torch.cos(angles)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


model = nn.Sequential(Positions(20, 8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(6, 20, 8), torch.randn(6, 20, 1)
for step in range(3):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
