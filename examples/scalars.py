"""weights.py with one number in each leaf, so no gradient is needed: 3, 4 * b and 1 / c.

`y` is a function that returns the root. gradscope can run it by name, without running the rest.

Try:
    gradscope backward examples/scalars.py
    gradscope backward examples/scalars.py::y
    gradscope backward examples/scalars.py::y --gradient 10
"""

import torch

a = torch.tensor(0.1, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
c = torch.tensor(0.1, requires_grad=True)


def y():
    return 3 * a + 2 * b * b + torch.log(c)


if __name__ == "__main__":
    y().backward()
    print(f"a.grad = {a.grad:.4f}")
    print(f"b.grad = {b.grad:.4f}")
    print(f"c.grad = {c.grad:.4f}")
