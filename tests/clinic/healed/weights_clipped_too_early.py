"""Healed. The weights are clamped after the step."""

import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
optimizer = torch.optim.SGD(critic.parameters(), lr=5e-2)


def clip_weights(module, bound=0.1):
    for parameter in module.parameters():
        parameter.data.clamp_(-bound, bound)


def critic_loss(real, fake):
    return critic(fake).mean() - critic(real).mean()


for step in range(3):
    real = torch.randn(40, 5) + 1
    fake = torch.randn(40, 5)
    loss = critic_loss(real, fake)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    clip_weights(critic)
    print(f"step {step} loss {loss.item():.5f}")
