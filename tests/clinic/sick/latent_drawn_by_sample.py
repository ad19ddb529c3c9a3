"""A variational autoencoder that draws its latent with `sample`: the encoder learns from the KL
term only."""

import torch
from torch import distributions as D
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self, size=12, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 24), nn.Tanh(), nn.Linear(24, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 24), nn.Tanh(), nn.Linear(24, size))

    def posterior(self, x):
        mean, log_std = self.encoder(x).chunk(2, dim=-1)
        return D.Normal(mean, log_std.clamp(-4, 2).exp())

    def elbo(self, x):
        q = self.posterior(x)
        z = q.sample()  # <- GS303
        likelihood = D.Normal(self.decoder(z), 1.0).log_prob(x).sum(-1).mean()
        prior = D.Normal(torch.zeros_like(q.loc), torch.ones_like(q.scale))
        kl = D.kl_divergence(q, prior).sum(-1).mean()
        return likelihood - kl


vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
for _ in range(5):
    loss = -vae.elbo(torch.randn(32, 12))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
