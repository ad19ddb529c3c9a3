"""A learned gate between two branches starts so far out that it never moves."""

import torch
from torch import nn

torch.manual_seed(0)


class Mixture(nn.Module):
    def __init__(self, opening):
        super().__init__()
        self.smooth = nn.Linear(10, 1)
        self.sharp = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1))
        self.gate = nn.Parameter(torch.tensor(opening))

    def forward(self, x):
        share = torch.sigmoid(self.gate)  # <- GS203
        return share * self.smooth(x) + (1 - share) * self.sharp(x)


def main():
    model = Mixture(opening=30.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(4):
        x = torch.randn(32, 10)
        loss = nn.functional.mse_loss(model(x), x.abs().sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
