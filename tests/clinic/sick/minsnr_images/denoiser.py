import torch
import torch.nn.functional as F
from torch import nn


def time_features(t, dim):
    freqs = torch.exp(-torch.arange(0, dim, 2) / dim * 6.0)
    angles = t.float().unsqueeze(1) * freqs
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, channels=1, width=16, time_dim=16):
        super().__init__()
        self.time_dim = time_dim
        self.time = nn.Sequential(nn.Linear(time_dim, width), nn.SiLU(), nn.Linear(width, width))
        self.enter = nn.Conv2d(channels, width, 3, padding=1)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.out = nn.Conv2d(2 * width, channels, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(time_features(t, self.time_dim))[:, :, None, None]
        skip = F.silu(self.enter(x) + emb)
        h = F.silu(self.norm(self.down(skip)))
        h = F.silu(self.mid(h) + emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(torch.cat([h, skip], dim=1))
