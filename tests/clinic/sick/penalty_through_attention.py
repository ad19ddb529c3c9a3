"""Gradient penalty on a transformer: derivative for ..._backward is not implemented."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Scorer(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        q, k, v = self.qkv(x)[:, None].chunk(3, dim=-1)
        mixed = F.scaled_dot_product_attention(q, k, v)  # <- GS410
        return self.out(mixed[:, 0].mean(dim=1))


model = Scorer()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
y = torch.randn(12, 1)

for step in range(3):
    x = torch.randn(12, 5, 8, requires_grad=True)
    score = model(x)
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = F.mse_loss(score, y) + 0.1 * slope.pow(2).sum(dim=(1, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
