"""Weight norm on one layer, spectral norm on another."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

torch.manual_seed(0)

model = nn.Sequential(
    weight_norm(nn.Linear(7, 20)),
    nn.LeakyReLU(0.1),
    spectral_norm(nn.Linear(20, 20)),
    nn.LeakyReLU(0.1),
    nn.Linear(20, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

x = torch.randn(44, 7)
y = torch.sin(x.sum(dim=1, keepdim=True))
for epoch in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
