import torch.nn as nn

from data import ANGLES


class ClipPoseNet(nn.Module):
    """3D conv trunk followed by one regression node per head angle."""

    def __init__(self, width=8):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv3d(1, width, 3, stride=(1, 2, 2), padding=1),
            nn.ReLU(),
            nn.Conv3d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.fc = nn.Sequential(nn.LazyLinear(48), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(48, 1) for name in ANGLES})

    def forward(self, clips):
        feat = self.fc(self.trunk(clips))
        return {name: head(feat).squeeze(-1) for name, head in self.heads.items()}
