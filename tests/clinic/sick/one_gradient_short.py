"""RuntimeError: function ScaleByBackward returned an incorrect number of gradients."""

import torch
from torch import nn

torch.manual_seed(0)


class ScaleBy(torch.autograd.Function):  # <~ GS406
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):  # <~ GS406
        x, factor = ctx.saved_tensors  # noqa: RUF059
        return grad * factor  # <- GS406


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return ScaleBy.apply(x, self.factor)  # <~ GS406


model = nn.Sequential(nn.Linear(4, 6), Scaled(6), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(15, 4), torch.randn(15, 1)
for step in range(3):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
