import itertools

import torch
from torch import nn


def build(sizes, last):
    layers = []
    for first, second in itertools.pairwise(sizes):
        layers += [nn.Linear(first, second), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1], last)


torch.manual_seed(0)
generator = build([4, 16, 2], nn.Tanh())
critic = build([2, 16, 1], nn.Identity())  # <~ GS307
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
critic_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))  # <- GS307
for step in range(4):
    real = torch.randn(16, 2) * 0.1 + 0.5
    fake = generator(torch.randn(16, 4))
    critic_optimizer.zero_grad()
    critic_loss = critic(fake.detach()).mean() - critic(real).mean()
    critic_loss.backward()
    critic_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = -critic(fake).mean()
    generator_loss.backward()
    generator_optimizer.step()
    print(step, critic_loss.item(), generator_loss.item())
