import torch.nn as nn
import torch.nn.functional as F


class DepthwiseSeparable(nn.Sequential):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__(
            nn.Conv2d(c_in, c_in, 3, stride, 1, groups=c_in, bias=False),
            nn.BatchNorm2d(c_in),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_in, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
        )


class HairMatteNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down = DepthwiseSeparable(width, 2 * width, stride=2)
        self.middle = DepthwiseSeparable(2 * width, 2 * width)
        self.up = DepthwiseSeparable(2 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        skip = self.stem(x)
        x = self.middle(self.down(skip))
        x = F.interpolate(self.up(x), scale_factor=2, mode="nearest")
        return self.out(x + skip)
