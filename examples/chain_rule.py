"""What the gradient argument means on a scalar: the derivative of everything you leave out.

d = log(8 * a * a), so dd/da = 2 / a = 0.4 at a = 5. All three calls below arrive at that 0.4: from
d with no argument, from c with dd/dc = 1/200 = 0.005, from b with dd/db = 8/200 = 0.04.

Try:
    gradscope backward examples/chain_rule.py
    gradscope backward examples/chain_rule.py --root c --gradient 0.005
    gradscope backward examples/chain_rule.py --root b --gradient 0.04
    gradscope backward examples/chain_rule.py --call 2
"""

import torch

a = torch.tensor(5.0, requires_grad=True)
b = a * a
c = 8 * b
d = torch.log(c)

d.backward(retain_graph=True)
print(f"from d, no gradient     a.grad = {a.grad:.4f}")

a.grad = None
c.backward(gradient=torch.tensor(0.005), retain_graph=True)
print(f"from c, gradient 0.005  a.grad = {a.grad:.4f}")

a.grad = None
b.backward(torch.tensor(0.04))
print(f"from b, gradient 0.04   a.grad = {a.grad:.4f}")
