import torch
import torch.nn as nn

from blocks import InvertedResidual, UpBlock


class MobileSegmenter(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.down1 = InvertedResidual(8, 12, expand=2, stride=2)
        self.down2 = InvertedResidual(12, 16, expand=2, stride=2)
        self.up1 = UpBlock(16, 12, 12)
        self.up2 = UpBlock(12, 8, 8)
        self.classifier = nn.Conv2d(8, classes, 1)

    def forward(self, x):
        x0 = self.stem(x)
        x1 = self.down1(x0)
        x2 = self.down2(x1)
        y = self.up1(x2, x1, torch.cat)
        y = self.up2(y, x0, torch.cat)
        return self.classifier(y)
