"""Attention from scratch over padded sequences; scores of padding are -inf on purpose."""

import math

import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, padding):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(padding[:, None, None, :], -math.inf)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


lengths = torch.tensor([6, 4, 1, 3])
padding = torch.arange(6)[None] >= lengths[:, None]
keep = (~padding).unsqueeze(-1).float()
x, y = torch.randn(4, 6, 12), torch.randn(4, 6, 12)
model = Attention(12, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    loss = ((model(x, padding) - y) ** 2 * keep).sum() / (keep.sum() * 12)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
