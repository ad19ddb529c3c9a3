"""A GAN whose critic steps every third time: its loss is sent back in between, too."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
adam_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
adam_d = torch.optim.Adam(critic.parameters(), lr=1e-3)

for iteration in range(6):
    real = torch.randn(32, 2) + 2
    fake = generator(torch.randn(32, 4))
    loss_d = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
    adam_d.zero_grad()
    loss_d.backward()
    if iteration % 3 == 2:
        adam_d.step()
    loss_g = F.softplus(-critic(fake)).mean() + 0.1 * (fake - real).abs().mean()
    adam_g.zero_grad()
    loss_g.backward()
    adam_g.step()
