"""RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn."""

import torch

torch.manual_seed(0)

x = torch.linspace(-3, 3, 200)
y = torch.sin(x)
coefficients = [torch.randn(()) for _ in range(4)]  # <~ GS403


def polynomial(x):
    a, b, c, d = coefficients
    return a + b * x + c * x**2 + d * x**3


for step in range(3):
    loss = (polynomial(x) - y).pow(2).mean()
    loss.backward()  # <- GS403
    with torch.no_grad():
        for coefficient in coefficients:
            coefficient -= 1e-4 * coefficient.grad
            coefficient.grad = None
    print(f"step {step} loss {loss.item():.4f}")
