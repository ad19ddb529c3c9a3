"""The chain of chain_rule.py on a vector: the gradient argument has the shape of its root.

e is a scalar and needs no gradient. d, c and b have three elements each, so each needs three
numbers: the derivatives of e with respect to those elements. All four give the same a.grad.
Whole numbers are as good as floats on the command line.

Try:
    gradscope backward examples/vector_chain.py
    gradscope backward examples/vector_chain.py --root d --gradient "[1, 1, 1]"
    gradscope backward examples/vector_chain.py --root c --gradient "[1/8, 1/32, 1/72]"
    gradscope backward examples/vector_chain.py --root b --gradient "[1, 8/32, 8/72]"
"""

import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = a * a
c = 8 * b
d = torch.log(c)
e = d.sum()

e.backward()
print("a.grad =", a.grad)
