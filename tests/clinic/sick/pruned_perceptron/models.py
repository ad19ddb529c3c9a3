import torch.nn as nn


class SpectraNet(nn.Module):
    def __init__(self, bands: int, width: int, classes: int):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(bands, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.features(x))
