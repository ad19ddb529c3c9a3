"""WGAN-GP, whose gradient penalty is a constant: `create_graph` was left out."""

import torch
from torch import nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    (slope,) = torch.autograd.grad(  # <- GS303
        score, between, torch.ones_like(score), retain_graph=True
    )
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


critic, generator = Critic(), nn.Linear(2, 3)
adam = torch.optim.Adam(critic.parameters(), lr=1e-4)
for _ in range(4):
    real = torch.randn(16, 3) + 2
    with torch.no_grad():
        fake = generator(torch.randn(16, 2))
    loss = critic(fake).mean() - critic(real).mean()
    loss = loss + 10.0 * gradient_penalty(critic, real, fake)
    adam.zero_grad()
    loss.backward()
    adam.step()
