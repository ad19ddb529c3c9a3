"""A variational autoencoder with the reparametrisation trick."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 24), nn.ReLU())
        self.mean = nn.Linear(24, 3)
        self.log_variance = nn.Linear(24, 3)
        self.decode = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 20))

    def forward(self, x):
        h = self.encode(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decode(z), mean, log_variance


x = (torch.rand(64, 20) > 0.6).float()
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    logits, mean, log_variance = model(x)
    fit = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    loss = (fit + divergence) / len(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
