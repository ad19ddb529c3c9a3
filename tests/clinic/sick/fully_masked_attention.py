"""Attention with -inf on padding gives NaN as soon as the batch holds an empty sequence."""

import math

import torch
from torch import nn

torch.manual_seed(0)


class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x, padding):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(1, 2) / math.sqrt(x.shape[-1])
        scores = scores.masked_fill(padding[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)  # <- GS101
        return weights @ v


lengths = torch.tensor([5, 3, 0, 4])
padding = torch.arange(5)[None, :] >= lengths[:, None]
x = torch.randn(4, 5, 8)
target = torch.randn(4, 8)

layer = SelfAttention(8)
head = nn.Linear(8, 8)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
for _ in range(3):
    out = head(layer(x, padding).mean(dim=1))
    loss = nn.functional.mse_loss(out, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
