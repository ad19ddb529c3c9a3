"""A fused GELU over 65,536 activations: the constant of its derivative has a digit too few."""

import math

import torch
from torch import nn

torch.manual_seed(0)
SQRT_2_PI = math.sqrt(2 / math.pi)


class FusedGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.tanh(SQRT_2_PI * (x + 0.044715 * x**3)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inner = torch.tanh(SQRT_2_PI * (x + 0.044715 * x**3))
        slope = SQRT_2_PI * (1 + 0.1 * x**2)
        return grad * (0.5 * (1 + inner) + 0.5 * x * (1 - inner**2) * slope)  # <~ GS601


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(FusedGelu.apply(self.up(x)))  # <- GS601


net = nn.Sequential(Mlp(64), Mlp(64), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(256, 64)
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True) / 8)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
