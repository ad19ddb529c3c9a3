"""Healed. The start has no equal singular values."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class LowRank(torch.nn.Module):
    def __init__(self, start):
        super().__init__()
        self.y = torch.nn.Parameter(start)

    def forward(self, tau=0.1):
        U, S, Vh = torch.linalg.svd(self.y)
        return U @ torch.diag_embed(F.relu(S - tau)) @ Vh


def blocks(n=15, rank=3):
    x = torch.zeros(n, rank)
    for i in range(rank):
        x[i, i] = i + 1
    return x.repeat_interleave(n // rank, dim=1)


model = LowRank(blocks() + torch.randn(15, 15))
seen = torch.rand(15, 15) < 0.6
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    opt.zero_grad()
    loss = ((model() - torch.ones(15, 15))[seen] ** 2).mean()
    loss.backward()
    opt.step()
    print(step, loss.item())
