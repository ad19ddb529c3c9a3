"""Exits trained in phases: later blocks and heads take no part yet."""

import torch
from torch import nn


class MultiExit(nn.Module):
    def __init__(self, d=16, n=3, k=4):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(d, d), nn.ReLU()) for _ in range(n))
        self.exits = nn.ModuleList(nn.Linear(d, k) for _ in range(n))

    def forward(self, x, upto):
        outs = []
        for block, head in list(zip(self.blocks, self.exits, strict=False))[:upto]:
            x = block(x)
            outs.append(head(x))
        return outs


torch.manual_seed(0)
net = MultiExit()
for phase in (1, 2, 3):
    params = [p for b in (net.blocks[:phase], net.exits[:phase]) for p in b.parameters()]
    opt = torch.optim.Adam(params, lr=1e-3)
    for _ in range(2):
        x, y = torch.randn(32, 16), torch.randint(0, 4, (32,))
        losses = [nn.functional.cross_entropy(o, y) for o in net(x, phase)]
        loss = sum(w * one for w, one in zip((0.2, 0.3, 1.0), losses, strict=False))
        opt.zero_grad()
        loss.backward()
        opt.step()
