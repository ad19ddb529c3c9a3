"""GAN for a sine wave: "is at version 2; expected version 1 instead" in the generator's
backward.
"""

import torch
from torch import nn

torch.manual_seed(0)

POINTS = torch.linspace(-1, 1, 15)

generator = nn.Sequential(nn.Linear(5, 32), nn.LeakyReLU(), nn.Linear(32, 15))
discriminator = nn.Sequential(nn.Linear(15, 32), nn.LeakyReLU(), nn.Linear(32, 1))  # <~ GS401
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
    d_loss.backward(retain_graph=True)
    opt_d.step()  # <- GS401
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    print(f"step {step} d {d_loss.item():.4f} g {g_loss.item():.4f}")
