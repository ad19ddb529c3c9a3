"""Healed. The local derivative is multiplied by what comes from above."""

import torch
from torch import nn

torch.manual_seed(0)


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, error):
        ctx.save_for_backward(error)
        return torch.log(torch.cosh(error))

    @staticmethod
    def backward(ctx, grad):
        (error,) = ctx.saved_tensors
        return grad * torch.tanh(error)


def loss_function(prediction, target, weight=0.01):
    return weight * LogCosh.apply(prediction - target).mean()


x = torch.randn(30, 3)
y = torch.sin(x[:, :1])
net = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    loss = loss_function(net(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
