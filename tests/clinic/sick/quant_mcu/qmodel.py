import torch
from torch import nn

from quantizer import FakeQuant


class QuantAct(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.levels = 2**bits - 1
        self.register_buffer("ceiling", torch.tensor(3.0))

    def forward(self, x):
        return FakeQuant.apply(x, self.ceiling, self.levels)  # <~ GS601


class TinyQuantNet(nn.Module):
    def __init__(self, bits, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.act1 = QuantAct(bits)
        self.conv2 = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.act2 = QuantAct(bits)
        self.fc = nn.Linear(12 * 4 * 4, classes)

    def forward(self, x):
        x = self.act1(self.conv1(x))
        x = self.act2(self.conv2(x))
        return self.fc(x.flatten(1))
