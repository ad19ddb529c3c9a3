import torch
import torch.nn as nn
import torch.nn.functional as F

from blocks import AttentionBlock


class SRNet(nn.Module):
    """Two-stage super-resolution: attention body, pixel shuffle, then a refinement."""

    def __init__(self, n_colors=3, n_feats=16, n_blocks=2, scale=2):
        super().__init__()
        self.head = nn.Conv2d(n_colors, n_feats, 3, padding=1)
        self.body = nn.ModuleList(AttentionBlock(n_feats) for _ in range(n_blocks))
        self.tail = nn.Conv2d(n_feats * n_blocks, n_feats, 1)
        self.up = nn.Sequential(
            nn.Conv2d(n_feats, n_feats * scale**2, 3, padding=1), nn.PixelShuffle(scale)
        )
        self.to_rgb = nn.Conv2d(n_feats, n_colors, 3, padding=1)
        self.refine = nn.Sequential(
            nn.Conv2d(n_colors, n_feats, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(n_feats, n_colors, 3, padding=1),
        )

    def forward(self, x):
        h = first = F.relu(self.head(x))
        outs = []
        for block in self.body:
            h = block(h)
            outs.append(h)
        h = self.tail(torch.cat(outs, dim=1)) + first
        coarse = self.to_rgb(self.up(h))
        return coarse, coarse + self.refine(coarse)
