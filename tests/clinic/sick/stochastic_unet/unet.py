import torch
import torch.nn as nn
import torch.nn.functional as F
from recompute import recompute


class ResBlock(nn.Module):
    def __init__(self, channels: int, time_dim: int, dropout: float, light_memory: bool):
        super().__init__()
        self.light_memory = light_memory
        self.norm1 = nn.GroupNorm(4, channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(time_dim, channels)
        self.norm2 = nn.GroupNorm(4, channels)
        self.drop = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def body(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return x + self.conv2(self.drop(F.silu(self.norm2(h))))

    def forward(self, x, t):
        return recompute(Wrapped(self), (x, t), self.light_memory)


class Wrapped:
    def __init__(self, block: ResBlock):
        self.body = block.body
        self.parameters = block.parameters

    def __call__(self, *inputs):
        return self.body(*inputs)


class SmallUNet(nn.Module):
    def __init__(self, channels=16, time_dim=16, dropout=0.3, light_memory=True):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, time_dim), nn.SiLU(), nn.Linear(time_dim, time_dim))
        self.enter = nn.Conv2d(1, channels, 3, padding=1)
        self.down = ResBlock(channels, time_dim, dropout, light_memory)
        self.mid = ResBlock(channels, time_dim, dropout, light_memory)
        self.up = ResBlock(channels, time_dim, dropout, light_memory)
        self.leave = nn.Conv2d(2 * channels, 1, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t[:, None])
        skip = self.down(self.enter(x), t)
        h = self.mid(F.avg_pool2d(skip, 2), t)
        h = self.up(F.interpolate(h, scale_factor=2), t)
        return self.leave(torch.cat([h, skip], dim=1))
