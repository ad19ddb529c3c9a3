"""The first loss is a normal number, the second is NaN. All weights are NaN after one step."""

import torch
from torch import nn

torch.manual_seed(0)


def distances(points):
    difference = points[:, None, :] - points[None, :, :]
    squared = (difference**2).sum(dim=-1)
    return torch.sqrt(squared)  # <- GS102


def stress(embedding, wanted):
    return ((distances(embedding) - wanted) ** 2).mean()


encoder = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)

objects = torch.randn(20, 10)
wanted = torch.cdist(objects, objects)

for step in range(4):
    loss = stress(encoder(objects), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}  stress {loss.item():.4f}")
