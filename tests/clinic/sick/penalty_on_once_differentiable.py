"""WGAN-GP: trying to differentiate twice a function that was marked with @once_differentiable."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable

torch.manual_seed(0)


class SmoothRelu(torch.autograd.Function):  # <~ GS410
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.softplus(x)

    @staticmethod
    @once_differentiable  # <~ GS410
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(x)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 20)
        self.last = nn.Linear(20, 1, bias=False)

    def forward(self, x):
        return self.last(SmoothRelu.apply(self.first(x)))  # <- GS410


critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(3):
    real, fake = torch.randn(16, 6) + 1, torch.randn(16, 6)
    mix = torch.rand(16, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
