"""The gradient argument as weights: backward computes sum_i v[i] * dy[i]/dx, never dy/dx alone.

Here y[i] depends only on a[i], b[i] and c[i], so each leaf gets v[i] times its own derivative:
a.grad = 3 * v, b.grad = 4 * b * v, c.grad = v / c. The program never calls backward. y is the one
tensor with a history that nothing else was made from, so it is the root.

Try:
    gradscope trace examples/weights.py
    gradscope backward --gradient "[0.1, 1, 0.0001]"
    gradscope backward examples/weights.py --gradient ones
    gradscope backward examples/weights.py --gradient "[0, 1, 0]"
"""

import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
c = torch.tensor([6.0, 7.0, 8.0], requires_grad=True)

# fmt: off
y = 3*a + 2*b*b + torch.log(c)
# fmt: on

print("y =", y)
