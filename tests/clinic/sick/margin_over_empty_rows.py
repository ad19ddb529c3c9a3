"""The rows are normalised by a count that is zero for one of them; the hinge hides the NaN from
backward, so that all gradients are zero."""

import torch
from torch import nn

torch.manual_seed(0)
scorer = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1)
items = torch.randn(8, 4, 6)
kept = torch.rand(8, 4) > 0.3
kept[0] = False
labels = torch.sign(torch.randn(8))
for _ in range(3):
    scores = scorer(items).squeeze(-1)
    mean = (scores * kept)[:1].sum(1) / kept[:1].sum(1)  # <- GS101
    loss = torch.clamp(1 - labels[:1] * mean, min=0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
