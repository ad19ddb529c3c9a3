"""Rows of zeros are normalised, but what their huge gradient is multiplied with is zero."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    embedding = nn.Embedding(50, 16, padding_idx=0)
    mix = nn.Linear(16, 16, bias=False)
    head = nn.Linear(16, 2)
    parameters = [*embedding.parameters(), *mix.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for step in range(4):
        tokens = torch.randint(1, 50, (8, 12))
        tokens[:, 9:] = 0
        unit = nn.functional.normalize(mix(embedding(tokens)), dim=-1)
        loss = nn.functional.cross_entropy(head(unit.sum(dim=1)), tokens[:, 0] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
