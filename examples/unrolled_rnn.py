"""A recurrent network unrolled by hand, whose gradient vanishes on the way back.

The loop is drawn as one row, with a strip of the gradients that enter its rounds.

Try:
    gradscope backward examples/unrolled_rnn.py
    gradscope backward examples/unrolled_rnn.py --top -5
"""

import torch

torch.manual_seed(0)
w = (torch.randn(32, 32) * 0.17).requires_grad_()
u = (torch.randn(8, 32) * 0.3).requires_grad_()

h = torch.zeros(4, 32)
for x in torch.randn(100, 4, 8):
    h = torch.tanh(h @ w + x @ u)
loss = (h**2).mean()
loss.backward()
