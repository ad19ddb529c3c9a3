import torch
from torch import nn


class Enhancer(nn.Module):
    """Estimates an illumination map and a little detail to add."""

    def __init__(self, width=8):
        super().__init__()
        self.illumination = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 3, padding=1),
            nn.Sigmoid(),
        )
        self.detail = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 3, 3, padding=1)
        )

    def forward(self, dark):
        light = dark / (self.illumination(dark) + 0.1)
        return torch.sigmoid(4 * (light + 0.1 * self.detail(dark)) - 2)
