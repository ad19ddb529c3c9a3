"""The program whose reports lie beside it; ``tests/hostile.py`` says what they are for."""

import torch
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


torch.manual_seed(0)
net = Net()
unused = nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([*net.parameters(), unused], lr=0.1)
for _ in range(3):
    x = torch.randn(4, 3)
    h = Square.apply(net(x))
    with torch.no_grad():
        part = (h * 2).sum()
    loss = h.exp().mean() + part.item()
    loss.backward()
    optimizer.step()
