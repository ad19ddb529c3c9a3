import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    def __init__(self, c_in, c_out, drop=0.1):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.drop = nn.Dropout2d(drop)

    def forward(self, x):
        x = self.drop(F.relu(self.bn1(self.conv1(x))))
        return self.drop(F.relu(self.bn2(self.conv2(x))))


class SmallUnet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.enc1 = DoubleConv(1, width)
        self.enc2 = DoubleConv(width, 2 * width)
        self.dec1 = DoubleConv(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = F.interpolate(self.enc2(F.max_pool2d(a, 2)), scale_factor=2)
        return torch.sigmoid(self.out(self.dec1(torch.cat([a, b], 1))))
