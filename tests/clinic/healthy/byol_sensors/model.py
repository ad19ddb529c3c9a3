import copy

import torch
import torch.nn.functional as F
from torch import nn


def mlp(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class Online(nn.Module):
    def __init__(self, channels=3, width=24, proj=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(channels, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.projector = mlp(width, 32, proj)

    def forward(self, x):
        return self.projector(self.encoder(x))


class BootstrapModel(nn.Module):
    def __init__(self, momentum=0.98):
        super().__init__()
        self.online = Online()
        self.predictor = mlp(16, 32, 16)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad_(False)
        self.momentum = momentum

    @torch.no_grad()
    def move_target(self, progress):
        tau = 1.0 - (1.0 - self.momentum) * (1.0 - progress)
        for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
            slow.data.mul_(tau).add_(fast.data, alpha=1.0 - tau)
        for slow, fast in zip(self.target.buffers(), self.online.buffers(), strict=True):
            slow.copy_(fast)

    def forward(self, a, b):
        loss = 0.0
        for view, other in ((a, b), (b, a)):
            p = F.normalize(self.predictor(self.online(view)), dim=1)
            with torch.no_grad():
                z = F.normalize(self.target(other), dim=1)
            loss = loss + (2.0 - 2.0 * (p * z.detach()).sum(1)).mean()
        return loss
