"""Gradients are clipped to norm one before the step."""

import torch
from torch import nn

torch.manual_seed(0)

rnn = nn.GRU(3, 12, batch_first=True)
out = nn.Linear(12, 1)
parameters = [*rnn.parameters(), *out.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
x = torch.randn(16, 10, 3)
y = 5 * x.sum(dim=(1, 2))[:, None]

for step in range(4):
    states, _ = rnn(x)
    loss = nn.functional.mse_loss(out(states[:, -1]), y)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, max_norm=1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f}")
