"""MAML by hand with create_graph, functional forward; query loss averaged over tasks."""

import itertools

import torch
import torch.nn.functional as F

torch.manual_seed(0)


def init(sizes):
    return [
        t.requires_grad_()
        for a, b in itertools.pairwise(sizes)
        for t in (torch.randn(b, a) / a**0.5, torch.zeros(b))
    ]


def forward(weights, x):
    for i in range(0, len(weights), 2):
        x = F.linear(x, weights[i], weights[i + 1])
        x = torch.tanh(x) if i + 2 < len(weights) else x
    return x


def task():
    amplitude, phase = torch.rand(1) * 4 + 1, torch.rand(1) * 3
    while True:
        x = torch.rand(10, 1) * 10 - 5
        yield x, amplitude * torch.sin(x + phase)


weights = init([1, 20, 20, 1])
alpha = torch.tensor(0.01, requires_grad=True)
meta = torch.optim.Adam([*weights, alpha], lr=1e-3)
for iteration in range(3):
    meta_loss, before = 0.0, 0.0
    for _ in range(3):
        sampler, fast = task(), weights
        for _ in range(2):
            inner = F.mse_loss(forward(fast, (xy := next(sampler))[0]), xy[1])
            grads = torch.autograd.grad(inner, fast, create_graph=True)
            fast = [w - alpha * g for w, g in zip(fast, grads, strict=False)]
        x, y = next(sampler)
        meta_loss = meta_loss + F.mse_loss(forward(fast, x), y)
        before += inner.item()
    meta.zero_grad()
    (meta_loss / 3).backward()
    meta.step()
    print(iteration, before / 3, meta_loss.item() / 3)
