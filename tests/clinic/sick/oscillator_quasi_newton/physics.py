import torch
from torch import nn

MASS, DAMPING, STIFFNESS = 1.0, 0.4, 4.0


class Displacement(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, t):
        return self.net(t)


def d(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]


class OscillatorLoss:
    """The equation on a grid of times, and the two initial conditions."""

    def __init__(self, n=60, t_max=2.0, weight=10.0):
        self.t = torch.linspace(0, t_max, n).view(-1, 1).requires_grad_()
        self.t0 = torch.zeros(1, 1, requires_grad=True)
        self.weight = weight

    def __call__(self, model):
        u = model(self.t)
        u_t = d(u, self.t)
        u_tt = d(u_t, self.t)
        residual = (MASS * u_tt + DAMPING * u_t + STIFFNESS * u).pow(2).mean()
        u0 = model(self.t0)
        start = (u0 - 1).pow(2).squeeze() + d(u0, self.t0).pow(2).squeeze()
        return residual + self.weight * start
