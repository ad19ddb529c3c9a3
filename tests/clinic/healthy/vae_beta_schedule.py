"""VAE with KL warm-up, gradient accumulation over three micro-batches, generator as data loader."""

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(inplace=True))
        self.mu, self.logvar = nn.Linear(24, latent), nn.Linear(24, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 24), nn.ReLU(inplace=True), nn.Linear(24, 12)
        )

    def forward(self, x):
        h = checkpoint(self.encoder, x, use_reentrant=False)
        mu, logvar = self.mu(h), self.logvar(h).clamp(-8, 8)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


def stream(n):
    for _ in range(n):
        yield (torch.rand(8, 12) > 0.5).float()


model = VAE()
opt = torch.optim.Adamax(model.parameters(), lr=2e-3)
accumulate, running = 3, torch.zeros(())
opt.zero_grad()
for i, x in enumerate(stream(12)):
    recon, mu, logvar = model(x)
    bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    beta = min(1.0, i / 6)
    with nullcontext():
        ((bce + beta * kl) / accumulate).backward()
    running += bce.detach()
    if (i + 1) % accumulate == 0:
        opt.step()
        opt.zero_grad()
        model.eval()
        with torch.no_grad():
            sample = torch.sigmoid(model.decoder(torch.randn(2, 3)))
        model.train()
        print(i, running.item() / (i + 1), sample.mean().item())
