import torch.nn as nn


class InvertedResidual(nn.Module):
    def __init__(self, c_in, c_out, expand, stride):
        super().__init__()
        hidden = c_in * expand
        self.stride = stride
        self.c_in, self.c_out = c_in, c_out
        self.conv = nn.Sequential(
            nn.Conv2d(c_in, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )

    def forward(self, x):
        out = self.conv(x)
        if self.stride == 2:
            return out
        if self.c_in != self.c_out:
            x = nn.Conv2d(self.c_in, self.c_out, 1, 1, 0)(x)  # <- GS307
        return x + out


class UpBlock(nn.Module):
    def __init__(self, c_in, c_skip, c_out):
        super().__init__()
        self.up = nn.ConvTranspose2d(c_in, c_skip, 4, stride=2, padding=1)
        self.residual = InvertedResidual(2 * c_skip, c_out, expand=2, stride=1)

    def forward(self, x, skip, cat):
        return self.residual(cat([skip, self.up(x)], 1))
