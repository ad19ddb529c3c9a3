"""Prototypes start at zero and are normalised: backward divides by a length that is next to 0."""

import torch
from torch import nn

torch.manual_seed(0)


class Prototypes(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, width))
        self.centres = nn.Parameter(torch.zeros(classes, width))

    def forward(self, x):
        features = nn.functional.normalize(self.encoder(x), dim=-1)
        centres = nn.functional.normalize(self.centres, dim=-1)  # <- GS206
        return 10.0 * features @ centres.T


def main():
    model = Prototypes(classes=4, width=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(4):
        x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
