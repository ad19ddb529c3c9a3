"""Densities behind a ReLU, transmittance by cumprod."""

import torch
from torch import nn


def encode(x, L=6):
    return torch.cat([x] + [f(2.0**i * x) for i in range(L) for f in (torch.sin, torch.cos)], -1)


class NeRF(nn.Module):
    def __init__(self, w=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(39, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU()
        )
        self.sigma, self.rgb = nn.Linear(w, 1), nn.Linear(w, 3)

    def forward(self, pts):
        h = self.trunk(encode(pts))
        return torch.relu(self.sigma(h)).squeeze(-1), torch.sigmoid(self.rgb(h))


def render(model, o, d, n=16):
    t = torch.linspace(2.0, 6.0, n) + torch.rand(o.shape[0], n) * 4.0 / n
    pts = o[:, None] + d[:, None] * t[..., None]
    sigma, rgb = model(pts)
    delta = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], -1)
    alpha = 1.0 - torch.exp(-sigma * delta)
    trans = torch.cumprod(1.0 - alpha + 1e-10, -1)
    trans = torch.roll(trans, 1, -1)
    trans[:, 0] = 1.0
    w = alpha * trans
    return (w[..., None] * rgb).sum(1)


torch.manual_seed(0)
model = NeRF()
opt = torch.optim.Adam(model.parameters(), lr=5e-4)
for _ in range(5):
    o = torch.zeros(32, 3)
    d = nn.functional.normalize(torch.randn(32, 3), dim=-1)
    loss = (render(model, o, d) - torch.rand(32, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
