"""Sequence model with long implicit filters, whose memory is a learned decay per channel."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class FilterConfig:
    channels: int = 8
    length: int = 48
    order: int = 6
    batch: int = 24
    steps: int = 30
    lr: float = 0.02
    min_decay: float = 0.05
    max_decay: float = 0.98


class ImplicitFilter(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        position = torch.linspace(0, 1, config.length).unsqueeze(1)
        bands = torch.arange(1, config.order // 2 + 1) * 3.1416
        features = [torch.sin(position * bands), torch.cos(position * bands)]
        self.register_buffer("features", torch.cat(features, dim=1))
        self.mlp = nn.Sequential(
            nn.Linear(config.order, 16), nn.GELU(), nn.Linear(16, config.channels)
        )
        self.decay = nn.Parameter(torch.linspace(0.7, 0.95, config.channels))

    def forward(self):
        steps = torch.arange(self.config.length).unsqueeze(1)
        low, high = self.config.min_decay, self.config.max_decay
        decay = self.decay.clamp(low, high)  # <- GS319
        return (1.0 + 0.1 * self.mlp(self.features)) * decay**steps


class LongConv(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.filter = ImplicitFilter(config)
        self.skip = nn.Parameter(torch.ones(config.channels))

    def forward(self, u):
        length = u.shape[1]
        kernel = self.filter()
        spectrum = torch.fft.rfft(u, n=2 * length, dim=1)
        response = torch.fft.rfft(kernel, n=2 * length, dim=0)
        y = torch.fft.irfft(spectrum * response, n=2 * length, dim=1)[:, :length]
        return y / length**0.5 + self.skip * u


class Recaller(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inp = nn.Linear(1, config.channels)
        self.conv = LongConv(config)
        self.out = nn.Linear(config.channels, 1)

    def forward(self, x):
        return self.out(self.conv(self.inp(x))).squeeze(-1)


def running_sums(config, generator):
    x = torch.randn(config.batch, config.length, 1, generator=generator)
    return x, x.squeeze(-1).cumsum(1) / config.length**0.5


def main():
    config = FilterConfig()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Recaller(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    for step in range(config.steps):
        x, y = running_sums(config, generator)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            decay = model.conv.filter.decay
            print(f"step {step:2d} loss {loss.item():.4f} decay up to {decay.max().item():.3f}")


if __name__ == "__main__":
    main()
