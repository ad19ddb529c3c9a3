"""Optimising an input: the network is frozen, the only leaf is the picture."""

import torch
from torch import nn

torch.manual_seed(0)

network = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1))
network.requires_grad_(False)
wanted = network(torch.rand(1, 1, 10, 10)).detach()
picture = torch.rand(1, 1, 10, 10, requires_grad=True)
optimizer = torch.optim.Adam([picture], lr=0.05)


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


for step in range(5):
    optimizer.zero_grad()
    features = network(picture)
    loss = nn.functional.mse_loss(gram(features), gram(wanted))
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        picture.clamp_(0, 1)
    print(f"step {step} loss {loss.item():.5f}")
