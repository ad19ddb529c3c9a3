"""A custom Function whose backward forgets a factor, in one of its two branches.

Huber is x * x near zero and a line further out, so its slope near zero is 2 * x. Torch does not
notice, and the program trains, only worse than it could.

Try:
    gradscope check examples/wrong_function.py
    gradscope check examples/custom_function.py
"""

import torch


class Huber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x.abs() < 1, x * x, 2 * x.abs() - 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.where(x.abs() < 1, x, 2 * x.sign())


weight = torch.tensor([0.5, -2.0], requires_grad=True)
inputs = torch.tensor([[1.0, 0.25], [0.5, 1.0], [-2.0, 0.5]])
targets = torch.tensor([0.25, -1.0, -3.5])

residual = inputs @ weight - targets
loss = Huber.apply(residual).mean()

loss.backward()
print("weight.grad =", weight.grad)
