import itertools

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, width=20, depth=3):
        super().__init__()
        sizes = [2] + [width] * depth
        layers = []
        for n_in, n_out in itertools.pairwise(sizes):
            layers += [nn.Linear(n_in, n_out), nn.Tanh()]
        self.body = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x, t):
        return self.body(torch.cat([x, t], dim=1))


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
