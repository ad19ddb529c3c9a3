"""Everything against everything, on purpose: a ranking loss, distances, a decaying bias."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
items, width = 16, 8
embed, score = nn.Linear(4, width), nn.Linear(width, 1)
optimizer = torch.optim.Adam([*embed.parameters(), *score.parameters()], lr=1e-2)
places = torch.arange(float(items))
column = places.view(-1, 1)

for _ in range(5):
    x, relevance = torch.randn(items, 4), torch.randn(items)
    e = torch.tanh(embed(x))
    row = score(e).squeeze(1)
    against = row.unsqueeze(1)
    better = (relevance.unsqueeze(1) > relevance).float()
    ranking = (better * F.softplus(row - against)).mean()
    left = e[:, None]
    apart = (left - e).pow(2).sum(-1)
    spread = torch.exp(-apart).mean()
    bias = -0.1 * (column - places).abs()
    mixed = torch.softmax(e @ e.T + bias, dim=-1) @ e
    loss = ranking + spread + mixed.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
