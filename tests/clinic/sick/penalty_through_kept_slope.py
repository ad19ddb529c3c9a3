"""A gradient penalty goes through a Function that keeps its slope on ctx: double backward takes it
for a constant."""

import torch
from torch import nn

torch.manual_seed(0)


class SoftSign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.slope = 1 / (1 + x.abs()) ** 2
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.slope  # <~ GS601


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 24), nn.Linear(24, 1, bias=False)

    def forward(self, x):
        return self.last(SoftSign.apply(self.first(x)))  # <- GS601


critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(4):
    real, fake = torch.randn(16, 5) + 1, torch.randn(16, 5)
    mix = torch.rand(16, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
