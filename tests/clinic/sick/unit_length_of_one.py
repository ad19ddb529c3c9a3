"""Projections are brought to unit length along the wrong dimension: each is 1 or -1."""

import torch
from torch import nn

torch.manual_seed(0)


def project(features, directions):
    """The features along some directions: (directions, samples, 1)."""
    return torch.stack([layer(features) for layer in directions])


def main():
    directions = nn.ModuleList(nn.Linear(6, 1) for _ in range(5))
    head = nn.Linear(5, 2)
    parameters = [*directions.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for step in range(4):
        x = torch.randn(32, 6)
        along = project(x, directions)
        unit = along / along.norm(dim=-1, keepdim=True)  # <- GS205
        loss = nn.functional.cross_entropy(head(unit.squeeze(-1).T), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
