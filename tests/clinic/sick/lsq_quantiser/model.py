import torch.nn as nn

from quantizers import QuantConv2d


def build_model(classes, width, bits):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        QuantConv2d(width, width, 3, stride=2, padding=1, bits=bits),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        QuantConv2d(width, 2 * width, 3, stride=2, padding=1, bits=bits),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )
