"""An equilibrium layer whose backward stops after one step of the linear system it has to solve."""

import torch
from torch import nn

torch.manual_seed(0)


class Equilibrium(torch.autograd.Function):
    """z = tanh(z W + x), found by iteration."""

    @staticmethod
    def forward(ctx, x, weight):
        z = torch.zeros_like(x)
        for _ in range(50):
            z = torch.tanh(z @ weight + x)
        with torch.enable_grad():
            ctx.z, ctx.x = z.detach().requires_grad_(), x.detach().requires_grad_()
            ctx.weight = weight.detach().requires_grad_()
            ctx.next = torch.tanh(ctx.z @ ctx.weight + ctx.x)
        return z

    @staticmethod
    def backward(ctx, grad):
        solved = grad
        for _ in range(1):
            (pulled,) = torch.autograd.grad(ctx.next, ctx.z, solved, retain_graph=True)
            solved = grad + pulled
        return torch.autograd.grad(ctx.next, (ctx.x, ctx.weight), solved)  # <~ GS601


encoder, decoder = nn.Linear(4, 10), nn.Linear(10, 2)
weight = nn.Parameter(torch.randn(10, 10) * 0.15)
optimizer = torch.optim.SGD([weight, *encoder.parameters(), *decoder.parameters()], lr=0.05)
for step in range(8):
    x = torch.randn(32, 4)
    hidden = Equilibrium.apply(encoder(x), weight)  # <- GS601
    loss = nn.functional.mse_loss(decoder(hidden), x[:, :2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
