"""Healed. The hook is gone."""

import torch
from torch import nn

torch.manual_seed(0)


class DomainModel(nn.Module):
    def __init__(self, strength=1.0):
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.strength = strength

    def forward(self, x):
        h = torch.tanh(self.encoder(x))
        return self.head(h)


x = torch.randn(50, 8)
y = (x.sum(dim=1) > 0).long()
model = DomainModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
