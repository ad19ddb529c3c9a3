"""Healed. One gradient for each input of forward."""

import torch
from torch import nn

torch.manual_seed(0)


class ScaleBy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, (grad * x).sum(dim=0)


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return ScaleBy.apply(x, self.factor)


model = nn.Sequential(nn.Linear(4, 6), Scaled(6), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(15, 4), torch.randn(15, 1)
for step in range(3):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
