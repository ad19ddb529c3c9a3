"""Residual branches whose last layer starts at zero (ReZero, diffusion models)."""

import torch
from torch import nn

torch.manual_seed(0)


class Branch(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        nn.init.zeros_(self.narrow.weight)
        nn.init.zeros_(self.narrow.bias)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.widen(self.norm(x))))


model = nn.Sequential(nn.Linear(4, 12), Branch(12), Branch(12), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(50, 4)
y = x.prod(dim=1, keepdim=True)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
