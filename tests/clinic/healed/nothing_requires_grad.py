"""Healed. The weights ask for gradients."""

import torch

torch.manual_seed(0)

x = torch.linspace(-3, 3, 200)
y = torch.sin(x)
coefficients = [torch.randn((), requires_grad=True) for _ in range(4)]


def polynomial(x):
    a, b, c, d = coefficients
    return a + b * x + c * x**2 + d * x**3


for step in range(3):
    loss = (polynomial(x) - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for coefficient in coefficients:
            coefficient -= 1e-4 * coefficient.grad
            coefficient.grad = None
    print(f"step {step} loss {loss.item():.4f}")
