import math

import torch
from torch import nn
import torch.nn.functional as F

from flow import NormalizingFlows


def log_standard_normal(x):
    return (-0.5 * math.log(2 * math.pi) - 0.5 * x**2).sum(-1)


def log_gaussian(x, mu, log_var):
    return (-0.5 * math.log(2 * math.pi) - 0.5 * log_var - (x - mu) ** 2 / (2 * log_var.exp())).sum(
        -1
    )


class FlowVAE(nn.Module):
    def __init__(self, data, hidden=64, latent=4, flows=4):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Linear(data, hidden), nn.Softplus(), nn.Linear(hidden, 2 * latent)
        )
        self.flow = NormalizingFlows(latent, flows)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.Softplus(), nn.Linear(hidden, data))

    def divergence(self, z0, mu, log_var):
        z, log_det = self.flow(z0)
        qz = log_gaussian(z0, mu, log_var) - torch.sum(log_det)  # <- GS530
        pz = log_standard_normal(z)
        return z, qz - pz

    def forward(self, x):
        mu, log_var = self.enc(x).chunk(2, dim=-1)
        z0 = mu + (0.5 * log_var).exp() * torch.randn_like(mu)
        z, kl = self.divergence(z0, mu, log_var)
        return self.dec(z), z, kl


def elbo_loss(model, x):
    logits, z, kl = model(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
    return (rec + kl).mean(), rec.mean().item(), kl.mean().item(), z
