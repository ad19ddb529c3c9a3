import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def time_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(1000.0) * torch.arange(half) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.sin(), args.cos()], dim=-1)


class Denoiser1D(nn.Module):
    def __init__(self, channels, width=32, emb_dim=16):
        super().__init__()
        self.emb_dim = emb_dim
        self.inp = nn.Conv1d(channels, width, 5, padding=2)
        self.time = nn.Linear(emb_dim, width)
        self.mid = nn.Conv1d(width, width, 5, padding=4, dilation=2)
        self.out = nn.Conv1d(width, channels, 5, padding=2)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(time_embedding(t, self.emb_dim))[:, :, None])
        h = h + F.silu(self.mid(h))
        return self.out(h)


class GaussianDiffusion1D(nn.Module):
    def __init__(self, model, timesteps=50):
        super().__init__()
        self.model, self.timesteps = model, timesteps
        betas = torch.linspace(1e-3, 0.15, timesteps)
        self.register_buffer("alphas_cumprod", torch.cumprod(1.0 - betas, dim=0))

    def q_sample(self, x0, t, noise):
        a = self.alphas_cumprod[t][:, None, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def forward(self, x0):
        t = torch.randint(0, self.timesteps, (x0.shape[0],))
        noise = torch.randn_like(x0)
        return F.mse_loss(self.model(self.q_sample(x0, t, noise), t), noise)
