"""Learned step size quantisation with detach tricks."""

import torch
from torch import nn


def grad_scale(x, s):
    return (x - x * s).detach() + x * s


def round_pass(x):
    return (x.round() - x).detach() + x


class LsqQuan(nn.Module):
    def __init__(self, bit, positive=False):
        super().__init__()
        self.neg, self.pos = (
            (0, 2**bit - 1) if positive else (-(2 ** (bit - 1)), 2 ** (bit - 1) - 1)
        )
        self.s = nn.Parameter(torch.ones(1))

    def init_from(self, x):
        self.s = nn.Parameter(x.detach().abs().mean() * 2 / self.pos**0.5)

    def forward(self, x):
        s = grad_scale(self.s, 1.0 / (self.pos * x.numel()) ** 0.5)
        x = torch.clamp(x / s, self.neg, self.pos)
        return round_pass(x) * s


class QConv(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv, self.qw, self.qa = conv, LsqQuan(3), LsqQuan(3, positive=True)
        self.qw.init_from(conv.weight)

    def forward(self, x):
        return self.conv._conv_forward(self.qa(x), self.qw(self.conv.weight), self.conv.bias)


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    QConv(nn.Conv2d(8, 8, 3)),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 36, 4),
)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    x, y = torch.randn(8, 1, 10, 10), torch.randint(0, 4, (8,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
