import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvBNBlock(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(c_out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class ScanNet(nn.Module):
    """Small classifier for one-channel scans."""

    def __init__(self, n_classes=3):
        super().__init__()
        self.stem = ConvBNBlock(1, 8, stride=2)
        self.stage = ConvBNBlock(8, 16, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, n_classes)

    def forward(self, x):
        x = self.stage(self.stem(x))
        return self.head(torch.flatten(self.pool(x), 1))
