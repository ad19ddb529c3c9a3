"""A gradient of a gradient: create_graph=True makes the backward pass itself leave a graph behind.

g = dy/dx = 2 * x is a tensor with a history, and that history holds nodes made by the first
backward. Going back through it gives the second derivative, 2 everywhere.

Try:
    gradscope backward examples/second_order.py
    gradscope backward examples/second_order.py --call 2
    gradscope backward examples/second_order.py --root g --gradient ones
"""

import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (x**2).sum()

g = torch.autograd.grad(y, x, create_graph=True)[0]
print("g      =", g.detach().tolist())

g.backward(torch.ones_like(g))
print("x.grad =", x.grad.tolist())
