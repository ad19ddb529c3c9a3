import math

import torch
import torch.nn as nn


class PositionalEncoding(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(levels) * math.pi)

    def forward(self, x):
        angles = x[..., None] * self.freqs
        return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)


class FeatureAggregator(nn.Module):
    """Pools the source views' features of a sample point by their mean and deviation."""

    def __init__(self, dim, out):
        super().__init__()
        self.view_fc = nn.Sequential(nn.Linear(3, dim), nn.ReLU())
        self.fc = nn.Sequential(nn.Linear(2 * dim, out), nn.ReLU())

    def forward(self, view_colours):
        features = self.view_fc(view_colours)
        mean = features.mean(0)
        var = ((features - mean) ** 2).mean(0)
        std = torch.sqrt(var)  # <- GS102
        return self.fc(torch.cat([mean, std], -1))


class RadianceField(nn.Module):
    def __init__(self, dim=12, levels=3):
        super().__init__()
        self.encoding = PositionalEncoding(levels)
        self.aggregate = FeatureAggregator(dim, dim)
        self.trunk = nn.Sequential(nn.Linear(3 + 6 * levels + dim, 24), nn.ReLU())
        self.sigma = nn.Linear(24, 1)
        self.rgb = nn.Linear(24, 3)

    def forward(self, points, view_colours):
        features = self.aggregate(view_colours)
        h = self.trunk(torch.cat([self.encoding(points), features], -1))
        density = torch.nn.functional.softplus(self.sigma(h).squeeze(-1) - 1)
        return density, torch.sigmoid(self.rgb(h))
