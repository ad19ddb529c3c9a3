import torch
import torch.nn as nn
import torch.nn.functional as F


class PairEncoder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.layers(x)


class RelativePoseNet(nn.Module):
    """Fully convolutional head: every pose comes out as a 1x1 map."""

    def __init__(self, width=8):
        super().__init__()
        self.encoder = PairEncoder(width)
        self.fuse = nn.Conv2d(4 * width, 4 * width, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.trans = nn.Conv2d(4 * width, 3, 1)
        self.rotation = nn.Conv2d(4 * width, 4, 1)

    def forward(self, query, reference):
        features = torch.cat([self.encoder(query), self.encoder(reference)], 1)
        x = self.pool(F.relu(self.fuse(features)))
        return self.trans(x), F.normalize(self.rotation(x), dim=1)
