"""Unrolled reconstruction that explodes at random."""

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(2, c, 3, padding=1)
        self.b = nn.Conv2d(c, 2, 3, padding=1)
        for m in (self.a, self.b):
            nn.init.normal_(m.weight, std=0.5)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))  # <- GS202


class Cascade(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = Denoiser(c)
        self.step = nn.Parameter(torch.ones(1))

    def forward(self, x, ref, mask):
        soft_dc = torch.where(mask, x - ref, torch.zeros(1)) * self.step
        return x - soft_dc + self.net(x)


class VarNet(nn.Module):
    def __init__(self, cascades=12, c=8):
        super().__init__()
        self.cascades = nn.ModuleList(Cascade(c) for _ in range(cascades))

    def forward(self, ref, mask):
        x = ref.clone()
        for cascade in self.cascades:
            x = cascade(x, ref, mask)
        return x


torch.manual_seed(0)
net = VarNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-4)
mask = torch.rand(1, 1, 8, 8) < 0.4
for _ in range(3):
    full = torch.randn(2, 2, 8, 8)
    loss = (net(full * mask, mask) - full).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
