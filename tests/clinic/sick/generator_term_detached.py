"""The generator's adversarial term was copied from the critic's step, `detach` and all; the
generator still learns, from the reconstruction alone."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
critic = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
adam_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
adam_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.9))


def train_step(real, noise, weight=10.0):
    fake = generator(noise)

    loss_d = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
    adam_d.zero_grad()
    loss_d.backward()
    adam_d.step()

    adversarial = F.softplus(-critic(fake.detach())).mean()  # <- GS303
    reconstruction = F.l1_loss(fake, real)
    loss_g = adversarial + weight * reconstruction
    adam_g.zero_grad()
    loss_g.backward()
    adam_g.step()
    return loss_d.item(), loss_g.item()


for _ in range(5):
    clean = torch.randn(16, 4) + 1
    train_step(clean, torch.cat([clean[:, :2], torch.randn(16, 4)], 1))
