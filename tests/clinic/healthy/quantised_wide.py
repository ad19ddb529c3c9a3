"""Quantised weights and activations of 20,000 elements: rounding with a straight-through backward,
a spike with a surrogate, a reversed gradient."""

import torch
from torch import nn

torch.manual_seed(0)


class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.is_inside = x.abs() < 4
        return (x * levels).round() / levels

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.is_inside, None


class Fire(torch.autograd.Function):
    @staticmethod
    def forward(ctx, potential):
        ctx.save_for_backward(potential)
        return (potential > 0).to(potential.dtype)

    @staticmethod
    def backward(ctx, grad):
        (potential,) = ctx.saved_tensors
        return grad / (1 + 4 * potential.abs()) ** 2


class Adversary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


encode, decode, domain = nn.Linear(50, 400), nn.Linear(400, 50), nn.Linear(400, 2)
parameters = [one for net in (encode, decode, domain) for one in net.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(8):
    x, place = torch.randn(60, 50), torch.randint(0, 2, (60,))
    weight = Nearest.apply(encode.weight, 64)
    spikes = Fire.apply(nn.functional.linear(x, weight, encode.bias))
    restored = decode(spikes)
    guess = domain(Adversary.apply(spikes, 0.1))
    loss = (restored - x).square().mean() + nn.functional.cross_entropy(guess, place)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
