"""A custom Function with a constant argument, for which backward returns None."""

import torch
from torch import nn

torch.manual_seed(0)


class LeakyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bound, leak):
        ctx.save_for_backward(x)
        ctx.bound, ctx.leak = bound, leak
        return x.clamp(-bound, bound) + leak * (x - x.clamp(-bound, bound))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = torch.where(x.abs() <= ctx.bound, 1.0, ctx.leak)
        return grad * slope, None, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 20)
        self.last = nn.Linear(20, 1)

    def forward(self, x):
        return self.last(LeakyClip.apply(self.first(x), 1.0, 0.1))


x = torch.randn(30, 4)
y = x.max(dim=1, keepdim=True).values
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(4):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
