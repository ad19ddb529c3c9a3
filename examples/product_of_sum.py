"""A product hands each factor the other one; a sum hands on what it gets, unchanged.

e = c * d sends d = 4 to c and c = 5 to d. c = a + b then passes the 4 to both a and b.

Try:
    gradscope trace examples/product_of_sum.py
    gradscope backward examples/product_of_sum.py
    gradscope backward examples/product_of_sum.py --root c --gradient 4
"""

import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a + b
d = torch.tensor(4.0, requires_grad=True)
e = c * d

e.backward()
print(f"e = {e.item():g}")
print(f"a.grad = {a.grad:g}")
print(f"b.grad = {b.grad:g}")
print(f"d.grad = {d.grad:g}")
