"""A score is normalised over its last dimension, which holds a single number."""

import torch
from torch import nn

torch.manual_seed(0)


class Scorer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(9, width), nn.GELU(), nn.Linear(width, 1))
        self.norm = nn.LayerNorm(1)
        self.calibration = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        score = self.encoder(x)
        score = self.norm(score)  # <- GS205
        return self.calibration(score)


def main():
    model = Scorer(width=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        x = torch.randn(40, 9)
        y = x.sum(dim=1, keepdim=True)
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
