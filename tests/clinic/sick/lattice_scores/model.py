import torch
from torch import nn


class AcousticModel(nn.Module):
    def __init__(self, features, labels, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(features, hidden, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(hidden, labels, 3, padding=1),
        )

    def forward(self, x):
        scores = self.net(x).transpose(1, 2)
        return torch.log_softmax(scores, dim=-1)
