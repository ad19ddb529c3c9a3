"""Healed. exp only ever sees the negative part."""

import itertools

import torch
import torch.nn.functional as F

torch.manual_seed(2)


def my_elu(x, alpha=1.0):
    return torch.where(
        x > 0,
        x,
        alpha * (torch.exp(x.clamp(max=0)) - 1),
    )


def forward(parameters, x):
    *hidden, (last_weight, last_bias) = parameters
    for weight, bias in hidden:
        x = my_elu(F.linear(x, weight, bias))
    return F.linear(x, last_weight, last_bias)


sizes = [3, 16, 16, 1]
parameters = [
    (
        (torch.randn(out, inp) / inp**0.5).requires_grad_(),
        torch.zeros(out, requires_grad=True),
    )
    for inp, out in itertools.pairwise(sizes)
]
optimizer = torch.optim.Adam([p for pair in parameters for p in pair], lr=1e-3)

x = torch.randn(64, 3) * 80
y = x.sum(dim=1, keepdim=True) / 80
for step in range(3):
    loss = F.smooth_l1_loss(forward(parameters, x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, round(loss.item(), 4))
