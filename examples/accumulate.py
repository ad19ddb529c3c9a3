""".grad accumulates: the second backward adds its gradient to what the first one left there.

One pass gives 3, 4 and 1. After two passes .grad holds 3 + 3 = 6, 4 + 4 = 8 and 1 + 1 = 2, which is
why a training loop calls zero_grad.

Try:
    gradscope backward examples/accumulate.py
    gradscope backward examples/accumulate.py --call 2
"""

import torch

a = torch.tensor(1.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
c = torch.tensor(1.0, requires_grad=True)

y = 3 * a + 2 * b * b + torch.log(c)

y.backward(retain_graph=True)
print(f"after one pass    a {a.grad:g}  b {b.grad:g}  c {c.grad:g}")

y.backward()
print(f"after two passes  a {a.grad:g}  b {b.grad:g}  c {c.grad:g}")
