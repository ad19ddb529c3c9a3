"""A graph whose length depends on the data: the loop leaves one node for each turn it took.

y ends as x * 2**10 after nine turns, so each element of x gets its weight times 1024. The calls to
norm() in the condition build nodes too, but nothing on the way back from y passes through them.

Try:
    gradscope trace examples/doubling.py
    gradscope backward examples/doubling.py
    gradscope backward examples/doubling.py --gradient "[1, 0, 0]"
"""

import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
while y.norm() < 1000:
    y = y * 2

y.backward(torch.tensor([0.1, 1, 0.0001]))
print("y      =", y.tolist())
print("x.grad =", [round(g, 4) for g in x.grad.tolist()])
