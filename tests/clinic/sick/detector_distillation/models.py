import torch.nn as nn


def conv_bn(c_in, c_out, stride=1):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.SiLU(),
    )


class Detector(nn.Module):
    """One-stage detector: two feature levels, one shared prediction head."""

    def __init__(self, width, num_classes=4):
        super().__init__()
        self.width = width
        self.stem = conv_bn(3, width, stride=2)
        self.level1 = conv_bn(width, width, stride=2)
        self.level2 = conv_bn(width, width, stride=2)
        self.head = nn.Conv2d(width, 5 + num_classes, 1)

    def forward(self, x):
        p1 = self.level1(self.stem(x))
        p2 = self.level2(p1)
        return [self.head(p1), self.head(p2)], [p1, p2]
