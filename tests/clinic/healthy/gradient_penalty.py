"""WGAN-GP critic: the slope at points between real and fake is part of the loss."""

import torch
from torch import nn

torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(5, 24), nn.Softplus(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)


def penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(
        outputs=critic(between).sum(),
        inputs=between,
        create_graph=True,
    )
    return ((slope.norm(dim=1) - 1) ** 2).mean()


for step in range(4):
    real, fake = torch.randn(24, 5) + 1, torch.randn(24, 5)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
