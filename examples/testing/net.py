"""A small network; its second layer is meant to see what the first has made of the input."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, frozen=False):
        super().__init__()
        self.fc1 = nn.Linear(3, 8)
        self.fc2 = nn.Linear(8, 2)
        self.frozen = frozen

    def forward(self, x):
        hidden = torch.tanh(self.fc1(x))
        if self.frozen:
            hidden = hidden.detach()
        return self.fc2(hidden)


def distance(a, b):
    return (a - b).pow(2).sum(1).sqrt().mean()
