import torch
from torch import nn


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).requires_grad_(False)

    def forward(self, one, other):
        return nn.functional.mse_loss(self.network(one), self.network(other))


torch.manual_seed(0)
model, perceptual = nn.Linear(4, 4), Perceptual()
first = torch.optim.Adam(model.parameters(), lr=1e-2)
second = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6):
    optimizer = first if step < 3 else second
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    perceptual(model(x), x).backward()
    optimizer.step()
