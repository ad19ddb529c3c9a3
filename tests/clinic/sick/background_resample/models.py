import torch
from torch import nn


class Classifier(nn.Module):
    """In-distribution classes and one more class for the background."""

    def __init__(self, inputs, classes, width=24):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.fc = nn.Linear(width, classes + 1)

    def forward(self, x):
        return self.fc(self.backbone(x))


class SampleWeights(nn.Module):
    """How much every background image counts."""

    def __init__(self, count):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(count))

    def forward(self, index):
        return torch.sigmoid(self.logits[index]) * 2
