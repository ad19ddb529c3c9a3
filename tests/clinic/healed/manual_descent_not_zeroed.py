"""Healed. The gradients are set to None after the update."""

import torch

torch.manual_seed(0)

celsius = torch.tensor([0.5, 14.0, 15.0, 28.0, 11.0, 8.0, 3.0, -4.0, 6.0, 13.0, 21.0])
unknown = torch.tensor([35.7, 55.9, 58.2, 81.9, 56.3, 48.9, 33.9, 21.8, 48.4, 60.4, 68.4])


def model(u, w, b):
    return w * u + b


def training_loop(steps, rate, params, u, c):
    for step in range(steps):
        loss = ((model(u, *params) - c) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= rate * p.grad
        for p in params:
            p.grad = None
        print(f"step {step} loss {loss.item():.4f}")
    return params


training_loop(
    steps=6,
    rate=1e-2,
    params=(torch.tensor(1.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)),
    u=0.1 * unknown,
    c=celsius,
)
