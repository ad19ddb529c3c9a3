"""Changing the weight of my loss term has no effect on the gradients."""

import torch
from torch import nn

torch.manual_seed(0)


class LogCosh(torch.autograd.Function):  # <~ GS601
    @staticmethod
    def forward(ctx, error):
        ctx.save_for_backward(error)
        return torch.log(torch.cosh(error))

    @staticmethod
    def backward(ctx, grad):  # noqa: ARG004  # <~ GS601
        (error,) = ctx.saved_tensors
        return torch.tanh(error)  # <- GS601


def loss_function(prediction, target, weight=0.01):
    return weight * LogCosh.apply(prediction - target).mean()  # <~ GS601


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
