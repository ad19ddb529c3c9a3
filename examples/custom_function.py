"""A node of your own: a torch.autograd.Function appears in the graph under its class name.

Square says itself how its gradient is computed, and keeps x for that. If backward were wrong,
torch would not notice: x.grad is whatever backward returns.

Try:
    gradscope trace examples/custom_function.py
    gradscope backward examples/custom_function.py
    gradscope backward examples/custom_function.py --root y --gradient "[1, 0, 0]"
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = Square.apply(x)
loss = y.sum()

loss.backward()
print("x.grad =", x.grad)
