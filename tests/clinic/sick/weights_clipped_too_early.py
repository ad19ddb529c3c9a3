"""WGAN-style critic is unstable; moving one line changes the result and I do not see why."""

import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
optimizer = torch.optim.SGD(critic.parameters(), lr=5e-2)


def clip_weights(module, bound=0.1):
    for parameter in module.parameters():
        parameter.data.clamp_(-bound, bound)  # <- GS401


def critic_loss(real, fake):
    return critic(fake).mean() - critic(real).mean()  # <~ GS401


for step in range(3):
    real = torch.randn(40, 5) + 1
    fake = torch.randn(40, 5)
    loss = critic_loss(real, fake)
    clip_weights(critic)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.5f}")
