"""A gate that starts closed, and never opens."""

import torch
from torch import nn


class Fusion(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.vis = nn.Linear(dim, dim)
        self.lang = nn.Linear(dim, dim)

    def forward(self, x, text):
        return self.vis(x) * self.lang(text).unsqueeze(1)


class Stage(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU())
        self.fusion = Fusion(dim)
        self.res_gate = nn.Sequential(
            nn.Linear(dim, dim, bias=False),
            nn.ReLU(),
            nn.Linear(dim, dim, bias=False),  # <~ GS205
            nn.Tanh(),
        )
        # initialize the gate to 0
        nn.init.zeros_(self.res_gate[0].weight)  # <~ GS205
        nn.init.zeros_(self.res_gate[2].weight)  # <~ GS205

    def forward(self, x, text):
        x = self.block(x)
        x_residual = self.fusion(x, text)
        return x + (self.res_gate(x_residual) * x_residual)  # <- GS205


class LAVT(nn.Module):
    def __init__(self, dim=12, depth=2):
        super().__init__()
        self.stages = nn.ModuleList([Stage(dim) for _ in range(depth)])
        self.decode = nn.Linear(dim, 2)

    def forward(self, x, text):
        for s in self.stages:
            x = s(x, text)
        return self.decode(x)


torch.manual_seed(0)
net = LAVT()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _i in range(3):
    x, text, y = torch.randn(4, 9, 12), torch.randn(4, 12), torch.randint(0, 2, (4, 9))
    loss = nn.functional.cross_entropy(net(x, text).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
