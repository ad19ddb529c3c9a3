"""A layer of causal attention whose mask is wrong by one: each position sees the next one.

gradscope depends examples/causal.py --of out --on x --axis 1
"""

import torch
from torch import nn

torch.manual_seed(0)
T, C = 8, 6
query, key, value = (nn.Linear(C, C) for _ in range(3))

x = torch.randn(4, T, C, requires_grad=True)
scores = query(x) @ key(x).transpose(1, 2) / C**0.5
hidden = torch.ones(T, T, dtype=torch.bool).triu(diagonal=2)  # 1 would hide the future
weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
out = weights @ value(x)

loss = out.pow(2).mean()
loss.backward()
