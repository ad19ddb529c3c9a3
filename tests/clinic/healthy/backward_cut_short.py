"""Saliency of a middle layer: a hook takes its gradient and ends backward there, on purpose."""

import torch
from torch import nn

torch.manual_seed(0)


class Enough(Exception):
    def __init__(self, grad):
        self.grad = grad


def take(grad):
    raise Enough(grad)


net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3))
for image in torch.randn(9, 6):
    middle = net[:4](image)
    middle.register_hook(take)
    try:
        net[4](middle).max().backward()
    except Enough as found:
        print(f"{(found.grad * middle).abs().sum().item():.4f}")
