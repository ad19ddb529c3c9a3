"""Behaviour cloning of a squashed Gaussian; the loss is infinite from the first step."""

import torch
from torch import nn


def atanh(x):
    return 0.5 * (x.log1p() - (-x).log1p())  # <- GS105


class SquashedGaussian:
    def __init__(self, loc, std):
        self.base = torch.distributions.Normal(loc, std)

    def logp(self, a):
        pre = atanh(a)
        jac = torch.log(1 - a.pow(2) + 1e-6)
        return (self.base.log_prob(pre) - jac).sum(-1)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Linear(4, 2)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, s):
        return SquashedGaussian(self.loc(s), self.log_std.exp())


torch.manual_seed(0)
actor = Actor()
opt = torch.optim.Adam(actor.parameters())
states = torch.randn(16, 4)
expert = torch.tanh(torch.randn(16, 2) * 8)  # demonstrations at the border of the box
for _ in range(3):
    bc_loss = -actor(states).logp(expert).mean()
    opt.zero_grad()
    bc_loss.backward()
    opt.step()
