import torch
from torch import nn


class VelocityNet(nn.Module):
    """Velocity field of a small flow matching policy."""

    def __init__(self, dim=4, cond=6, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim + cond + 1, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, dim),
        )

    def forward(self, x, t, cond):
        return self.net(torch.cat([x, t, cond], dim=1))


class GaussianStep:
    """One noisy Euler step and its log probability."""

    def __init__(self, step_size, sigma):
        self.step_size = step_size
        self.sigma = sigma

    def mean(self, velocity, x):
        return x + self.step_size * velocity.float()

    def log_prob(self, nxt, mean):
        return -((nxt - mean) ** 2).sum(1) / (2 * self.sigma**2 * self.step_size)
