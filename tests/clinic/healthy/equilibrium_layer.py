"""An equilibrium layer: backward solves a linear system on a graph of its own; trained by hand."""

import torch

torch.manual_seed(0)


class Equilibrium(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        z = torch.zeros_like(x)
        for _ in range(60):
            z = torch.tanh(z @ weight + x)
        with torch.enable_grad():
            ctx.z, ctx.x = z.detach().requires_grad_(), x.detach().requires_grad_()
            ctx.weight = weight.detach().requires_grad_()
            ctx.next = torch.tanh(ctx.z @ ctx.weight + ctx.x)
        return z

    @staticmethod
    def backward(ctx, grad):
        solved = grad
        for _ in range(60):
            (pulled,) = torch.autograd.grad(ctx.next, ctx.z, solved, retain_graph=True)
            solved = grad + pulled
        return torch.autograd.grad(ctx.next, (ctx.x, ctx.weight), solved)


encoder = (torch.randn(4, 10) * 0.5).requires_grad_()
weight = (torch.randn(10, 10) * 0.15).requires_grad_()
decoder = (torch.randn(10, 2) * 0.3).requires_grad_()
for step in range(12):
    x = torch.randn(32, 4)
    loss = (Equilibrium.apply(x @ encoder, weight) @ decoder - x[:, :2]).square().mean()
    learned = [encoder, weight, decoder]
    for one, grad in zip(learned, torch.autograd.grad(loss, learned), strict=True):
        with torch.no_grad():
            one -= 0.05 * grad
    print(f"step {step} loss {loss.item():.4f}")
