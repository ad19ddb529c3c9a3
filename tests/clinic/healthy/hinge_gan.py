"""Hinge losses of a GAN with spectral norm."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm as sn

torch.manual_seed(0)
D = nn.Sequential(
    sn(nn.Linear(2, 64)),
    nn.LeakyReLU(0.1),
    sn(nn.Linear(64, 64)),
    nn.LeakyReLU(0.1),
    sn(nn.Linear(64, 1)),
)
G = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2), nn.Tanh())
dopt = torch.optim.Adam(D.parameters(), 4e-4, betas=(0.0, 0.9))
gopt = torch.optim.Adam(G.parameters(), 1e-4, betas=(0.0, 0.9))
for _ in range(3):
    real = torch.randn(32, 2) * 0.2
    fake = G(torch.randn(32, 8))
    d_loss = torch.relu(1 - D(real)).mean() + torch.relu(1 + D(fake.detach())).mean()
    dopt.zero_grad()
    d_loss.backward()
    dopt.step()
    g_loss = -D(fake).mean()
    gopt.zero_grad()
    g_loss.backward()
    gopt.step()
