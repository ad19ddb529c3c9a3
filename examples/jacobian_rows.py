"""A gradient with a single 1 in it picks one row of the Jacobian; all ones adds the rows up.

dz/dx is 2 times the identity. [[1, 0, 0, 0]] gives its first row, [[0, 1, 0, 0]] its second, and
[[1, 1, 1, 1]] gives what loss.backward() gives, because dloss/dz is all ones. loss has shape [1],
not [], which backward accepts without a gradient too: it asks for one element, not for a scalar.

Try:
    gradscope backward examples/jacobian_rows.py
    gradscope backward examples/jacobian_rows.py --root z --gradient "[[1, 0, 0, 0]]"
    gradscope backward examples/jacobian_rows.py --root z --gradient "[[0, 1, 0, 0]]"
    gradscope backward examples/jacobian_rows.py --root z --gradient "[[1, 1, 1, 1]]"
"""

import torch

x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
z = 2 * x
loss = z.sum(dim=1)

loss.backward()
print("loss   =", loss.detach(), "of shape", list(loss.shape))
print("x.grad =", x.grad)
