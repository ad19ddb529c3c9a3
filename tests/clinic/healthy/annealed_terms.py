"""KL annealing and an auxiliary loss, both with weight 0 at first."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(12, 16)
        self.mu, self.logvar = nn.Linear(16, 3), nn.Linear(16, 3)
        self.dec = nn.Linear(3, 12)
        self.aux = nn.Linear(16, 4)

    def forward(self, x):
        h = torch.tanh(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h).clamp(-8, 8)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar, self.aux(h)


torch.manual_seed(0)
m = Model()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for step in range(6):
    beta = min(1.0, step / 4)
    aux_weight = 0.0 if step < 2 else 0.3
    x, y = torch.randn(32, 12), torch.randint(0, 4, (32,))
    rec, mu, logvar, logits = m(x)
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    loss = (rec - x).pow(2).mean() + beta * kl + aux_weight * nn.functional.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
