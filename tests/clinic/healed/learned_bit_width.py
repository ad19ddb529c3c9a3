"""Healed. ceil lets the gradient through."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class QuantConfig:
    start_bits: float = 4.3
    signed: bool = True


def ste_ceil(x):
    return x + (x.ceil() - x).detach()


def ste_round(x):
    return x + (x.round() - x).detach()


class Quantizer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.bits = nn.Parameter(torch.tensor(cfg.start_bits))

    def forward(self, w):
        n = 2 ** (ste_ceil(self.bits) - 1)
        q = torch.minimum(torch.maximum(w / self.scale, -n), n - 1)
        return ste_round(q) * self.scale


class QLinear(nn.Linear):
    def __init__(self, *args, cfg=QuantConfig(), **kw):
        super().__init__(*args, **kw)
        self.quant = Quantizer(cfg)

    def forward(self, x):
        return nn.functional.linear(x, self.quant(self.weight), self.bias)


torch.manual_seed(0)
net = nn.Sequential(QLinear(10, 32), nn.ReLU(), QLinear(32, 3))
with torch.no_grad():
    for m in net:
        if isinstance(m, QLinear):
            m.weight.mul_(6)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    x, y = torch.randn(64, 10), torch.randint(0, 3, (64,))
    cost = sum(m.quant.scale.abs() for m in net if isinstance(m, QLinear))
    loss = nn.functional.cross_entropy(net(x), y) + 1e-3 * cost
    opt.zero_grad()
    loss.backward()
    opt.step()
