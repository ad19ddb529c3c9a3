import math

import torch
from network import derivative

NU = 0.05


class Residual:
    name = "residual"

    def __init__(self, n, generator):
        self.x = 2 * torch.rand(n, 1, generator=generator) - 1
        self.t = torch.rand(n, 1, generator=generator)

    def loss(self, model):
        x, t = self.x.requires_grad_(), self.t.requires_grad_()
        u = model(x, t)
        u_x = derivative(u, x)
        return (derivative(u, t) + u * u_x - NU * derivative(u_x, x)).pow(2).mean()


class Initial:
    name = "initial"

    def __init__(self, n, generator):
        self.x = 2 * torch.rand(n, 1, generator=generator) - 1
        self.u = -torch.sin(math.pi * self.x)

    def loss(self, model):
        return (model(self.x, torch.zeros_like(self.x)) - self.u).pow(2).mean()


class Boundary:
    name = "boundary"

    def __init__(self, n, generator):
        self.t = torch.rand(n, 1, generator=generator)
        self.x = torch.where(torch.arange(n).view(-1, 1) % 2 == 0, -1.0, 1.0)

    def loss(self, model):
        return model(self.x, self.t).pow(2).mean()
