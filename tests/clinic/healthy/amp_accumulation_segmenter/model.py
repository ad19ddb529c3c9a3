import torch
import torch.nn as nn


class TinyUNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enc1 = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU()
        )
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.mid = nn.Sequential(
            nn.GroupNorm(4, 2 * width), nn.ReLU(), nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        )
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x):
        skip = self.enc1(x)
        h = torch.relu(self.mid(self.down(skip)))
        return self.out(torch.cat([skip, self.up(h)], dim=1))


def dice_bce(logits, target):
    logits = logits.float()
    bce = nn.functional.binary_cross_entropy_with_logits(logits, target)
    prob = logits.sigmoid()
    inter = (prob * target).sum(dim=(1, 2, 3))
    dice = (2 * inter + 1) / (prob.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + 1)
    return bce + (1 - dice).mean()
