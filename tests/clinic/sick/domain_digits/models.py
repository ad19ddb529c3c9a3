import torch.nn.functional as F
from functions import GradientFlip
from torch import nn


class Extractor(nn.Module):
    def __init__(self, inputs=20, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, hidden)

    def forward(self, x):
        return F.relu(self.fc2(F.relu(self.fc1(x))))


class LabelHead(nn.Module):
    def __init__(self, hidden=32, classes=4):
        super().__init__()
        self.fc = nn.Linear(hidden, classes)

    def forward(self, h):
        return self.fc(h)


class DomainHead(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(hidden, 24)
        self.fc2 = nn.Linear(24, 2)

    def forward(self, h, constant):
        h = GradientFlip.apply(h, constant)
        return self.fc2(F.relu(self.fc1(h)))
