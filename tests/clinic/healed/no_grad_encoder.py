"""Healed. The helper without no_grad is used in training."""

import torch
from torch import nn

torch.manual_seed(0)

encoder = nn.Sequential(nn.Linear(15, 20), nn.Tanh(), nn.Linear(20, 10))
head = nn.Linear(10, 2)
optimizer = torch.optim.Adam(
    [{"params": encoder.parameters(), "lr": 1e-4}, {"params": head.parameters()}], lr=1e-3
)


def extract(x):
    features = encoder(x)
    return features / 2


def train_step(x, y):
    encoder.train()
    logits = head(extract(x))
    loss = nn.functional.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


x, y = torch.randn(64, 15), torch.randint(0, 2, (64,))
for epoch in range(3):
    print(f"epoch {epoch} loss {train_step(x, y):.4f}")
