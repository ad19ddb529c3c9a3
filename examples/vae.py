"""A variational autoencoder whose second term outweighs the first.

gradscope backward examples/vae.py --by term
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(20, 24), nn.ReLU())
        self.mu = nn.Linear(24, 3)
        self.logvar = nn.Linear(24, 3)
        self.dec = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 20))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.dec(z), mu, logvar


x = (torch.rand(64, 20) > 0.6).float()
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(5):
    recon, mu, logvar = model(x)
    mse = F.mse_loss(recon, x)
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    loss = mse + 100 * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mse {mse.item():.4f}  kl {kl.item():.6f}")
