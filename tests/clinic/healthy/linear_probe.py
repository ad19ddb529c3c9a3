"""Linear probing: the backbone is frozen and runs without gradients."""

import torch
from torch import nn

torch.manual_seed(0)

backbone = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 12))
backbone.requires_grad_(False).eval()
probe = nn.Linear(12, 4)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)


def step(images, labels):
    with torch.no_grad():
        features = backbone(images)
    loss = nn.functional.cross_entropy(probe(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


images, labels = torch.randn(60, 16), torch.randint(0, 4, (60,))
for epoch in range(5):
    print(f"epoch {epoch} loss {step(images, labels):.4f}")
