"""Where with a harmless operand inside, and forces by a second derivative."""

import torch
from torch import nn


def safe_norm(x, dim):
    sq = x.square().sum(dim)
    zero = sq == 0
    return torch.where(
        zero, torch.zeros_like(sq), torch.where(zero, torch.ones_like(sq), sq).sqrt()
    )


def sinc(x):
    small = x.abs() < 1e-4
    y = torch.where(small, torch.ones_like(x), x)
    return torch.where(small, 1 - x**2 / 6, y.sin() / y)


def xlogx(p):
    return torch.where(p > 0, p * torch.log(p.clamp_min(1e-30)), torch.zeros_like(p))


class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, pos):
        diff = pos[:, None] - pos[None]
        r = safe_norm(diff, -1)
        return (self.net(sinc(r)[..., None]).squeeze(-1) * (r < 2.5)).sum()


torch.manual_seed(0)
model = Forces()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    pos = torch.randn(9, 3, requires_grad=True)
    energy = model(pos)
    (force,) = torch.autograd.grad(energy, pos, create_graph=True)
    p = torch.relu(torch.randn(5)).softmax(0)
    loss = energy.square() + force.square().mean() + xlogx(p).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
