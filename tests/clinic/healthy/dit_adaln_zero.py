"""Diffusion transformer whose gates and last layer start at zero."""

import torch
import torch.nn as nn


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class DiTBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1 = nn.LayerNorm(d, elementwise_affine=False)
        self.attn = nn.MultiheadAttention(d, 2, batch_first=True)
        self.n2 = nn.LayerNorm(d, elementwise_affine=False)
        self.mlp = nn.Sequential(
            nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d)
        )
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))

    def forward(self, x, c):
        s1, sc1, g1, s2, sc2, g2 = self.ada(c).chunk(6, -1)
        h = modulate(self.n1(x), s1, sc1)
        x = x + g1.unsqueeze(1) * self.attn(h, h, h, need_weights=False)[0]
        return x + g2.unsqueeze(1) * self.mlp(modulate(self.n2(x), s2, sc2))


class DiT(nn.Module):
    def __init__(self, d=16, depth=4):
        super().__init__()
        self.inp = nn.Linear(4, d)
        self.t = nn.Sequential(nn.Linear(1, d), nn.SiLU(), nn.Linear(d, d))
        self.blocks = nn.ModuleList([DiTBlock(d) for _ in range(depth)])
        self.norm = nn.LayerNorm(d, elementwise_affine=False)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(d, 2 * d))
        self.out = nn.Linear(d, 4)
        for b in self.blocks:
            nn.init.zeros_(b.ada[-1].weight)
            nn.init.zeros_(b.ada[-1].bias)
        for m in (self.ada[-1], self.out):
            nn.init.zeros_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x, t):
        c = self.t(t[:, None])
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, c)
        shift, scale = self.ada(c).chunk(2, -1)
        return self.out(modulate(self.norm(h), shift, scale))


torch.manual_seed(0)
net = DiT()
ema = {k: v.clone() for k, v in net.state_dict().items()}
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(6):
    x0 = torch.randn(8, 9, 4)
    t = torch.rand(8)
    noise = torch.randn_like(x0)
    xt = (1 - t)[:, None, None] * x0 + t[:, None, None] * noise
    loss = (net(xt, t) - (noise - x0)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].lerp_(v, 0.01)
