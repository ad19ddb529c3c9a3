"""Rows without any key are put back to 0 before and after the softmax."""

import math

import torch
import torch.nn as nn


def masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, float("-inf"))
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(empty, 0.0)
    return scores.softmax(-1).masked_fill(empty, 0.0)


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        w = masked_softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), mask)
        return x + self.out(w @ v)


torch.manual_seed(0)
att, head = Attention(8), nn.Linear(8, 3)
opt = torch.optim.Adam([*att.parameters(), *head.parameters()])
for _ in range(3):
    x = torch.randn(4, 6, 8)
    lengths = torch.tensor([6, 3, 0, 5])
    valid = torch.arange(6)[None] < lengths[:, None]
    mask = valid[:, None, :] & torch.ones(6, 6).tril().bool()
    y = torch.randint(0, 3, (4, 6)).masked_fill(~valid, -100)
    loss = nn.functional.cross_entropy(head(att(x, mask)).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
