"""Healed. Both backward calls come before the two steps."""

import torch
from torch import nn

torch.manual_seed(0)

POINTS = torch.linspace(-1, 1, 15)

generator = nn.Sequential(nn.Linear(5, 32), nn.LeakyReLU(), nn.Linear(32, 15))
discriminator = nn.Sequential(nn.Linear(15, 32), nn.LeakyReLU(), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)


def paintings(batch=32):
    return torch.sin(POINTS * torch.pi) + 0.02 * torch.randn(batch, 15)


for step in range(3):
    fake = generator(torch.randn(32, 5))
    real_score = torch.sigmoid(discriminator(paintings()))
    fake_score = torch.sigmoid(discriminator(fake))
    d_loss = -(torch.log(real_score) + torch.log(1 - fake_score)).mean()
    g_loss = torch.log(1 - fake_score).mean()

    opt_d.zero_grad()
    d_loss.backward(retain_graph=True, inputs=list(discriminator.parameters()))
    opt_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    opt_d.step()
    opt_g.step()
    print(f"step {step} d {d_loss.item():.4f} g {g_loss.item():.4f}")
