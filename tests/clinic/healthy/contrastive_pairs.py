"""SimCLR-style loss: similarities of all pairs, the diagonal masked with -inf."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

encoder = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 6))
temperature = nn.Parameter(torch.tensor(0.5))
optimizer = torch.optim.Adam([*encoder.parameters(), temperature], lr=1e-3)


def nt_xent(a, b):
    z = torch.cat([a, b])
    similarity = F.cosine_similarity(z[:, None, :], z[None, :, :], dim=-1)
    similarity = similarity / temperature.clamp(min=0.05)
    similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    partner = torch.arange(len(z)).roll(len(a))
    return F.cross_entropy(similarity, partner)


for step in range(4):
    x = torch.randn(20, 10)
    views = [x + 0.1 * torch.randn_like(x) for _ in range(2)]
    loss = nt_xent(*map(encoder, views))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
