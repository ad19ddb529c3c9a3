import math

import torch
import torch.nn.functional as F


def cosine_betas(timesteps, offset=0.008):
    def level(t):
        return math.cos((t + offset) / (1.0 + offset) * math.pi / 2) ** 2

    betas = []
    for i in range(timesteps):
        betas.append(min(1.0 - level((i + 1) / timesteps) / level(i / timesteps), 0.999))
    return torch.tensor(betas)


def enforce_zero_terminal(betas):
    """Shift and scale the schedule so that the last step is pure noise."""
    root = torch.cumprod(1.0 - betas, 0).sqrt()
    first, last = root[0].clone(), root[-1].clone()
    root = (root - last) * first / (first - last)
    bar = root.square()
    alphas = torch.cat([bar[:1], bar[1:] / bar[:-1]])
    return 1.0 - alphas


class NoiseProcess:
    def __init__(self, timesteps=20, rescale=True, gamma=5.0):
        betas = cosine_betas(timesteps)
        if rescale:
            betas = enforce_zero_terminal(betas)
        bar = torch.cumprod(1.0 - betas, 0)
        self.timesteps = timesteps
        self.gamma = gamma
        self.signal = bar.sqrt()
        self.noise = (1.0 - bar).sqrt()

    def diffuse(self, x0, t, eps):
        shape = (-1,) + (1,) * (x0.dim() - 1)
        return self.signal[t].view(shape) * x0 + self.noise[t].view(shape) * eps

    def loss_weight(self, t):
        snr = (self.signal[t] / self.noise[t]).square()
        capped = torch.minimum(snr, torch.full_like(snr, self.gamma))
        return capped / snr  # <- GS105

    def training_loss(self, model, x0, t):
        eps = torch.randn_like(x0)
        pred = model(self.diffuse(x0, t, eps), t)
        per_sample = F.mse_loss(pred, eps, reduction="none").flatten(1).mean(1)
        return (self.loss_weight(t) * per_sample).mean()
