import torch
import torch.nn.functional as F
from torch import nn


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class SmallUNet(nn.Module):
    def __init__(self, channels=1, width=8):
        super().__init__()
        self.down1 = double_conv(channels, width)
        self.down2 = double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skip = self.down1(x)
        deep = self.down2(F.max_pool2d(skip, 2))
        return self.mask(self.merge(torch.cat([self.up(deep), skip], dim=1)))
