import torch
from torch import nn


class WaveEncoder(nn.Module):
    """Small stand-in for a self-supervised speech encoder."""

    def __init__(self, dim=32, freeze=False):
        super().__init__()
        self.freeze = freeze
        self.conv = nn.Sequential(
            nn.Conv1d(1, dim, kernel_size=8, stride=4),
            nn.GELU(),
            nn.Conv1d(dim, dim, kernel_size=4, stride=2),
            nn.GELU(),
        )
        self.proj = nn.Linear(dim, dim)
        if freeze:
            for p in self.parameters():
                p.requires_grad_(False)

    def forward(self, wav):
        if self.freeze:
            with torch.no_grad():
                return self.extract(wav)
        return self.extract(wav)

    def extract(self, wav):
        z = self.conv(wav.unsqueeze(1)).transpose(1, 2)
        return self.proj(z)


class CTCHead(nn.Module):
    def __init__(self, dim, vocab):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 64), nn.LeakyReLU(), nn.Linear(64, vocab))

    def forward(self, z):
        return self.net(z)
