import torch.nn as nn


def conv_block(cin, cout, stride):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride=stride, padding=1), nn.LeakyReLU(0.1))


class CellDetector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(
            conv_block(1, width, 2),
            conv_block(width, 2 * width, 2),
            conv_block(2 * width, 2 * width, 1),
        )
        self.head = nn.Conv2d(2 * width, 4, 1)

    def forward(self, x):
        return self.head(self.backbone(x))
