"""First-order MAML: six inner steps without create_graph; then Reptile on a copied learner."""

import copy

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-3)


def adapt(x, y, steps=6, lr=0.05):
    fast = dict(model.named_parameters())
    for _ in range(steps):
        loss = (functional_call(model, fast, (x,)) - y).pow(2).mean()
        grads = torch.autograd.grad(loss, fast.values())
        fast = {k: w - lr * g for (k, w), g in zip(fast.items(), grads, strict=False)}
    return fast


def reptile(x, y):
    learner = copy.deepcopy(model)
    opt = torch.optim.SGD(learner.parameters(), lr=0.05)
    for _ in range(3):
        loss = (learner(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        for p, q in zip(model.parameters(), learner.parameters(), strict=False):
            p.lerp_(q, 0.1)


for it in range(3):
    x = torch.rand(20, 1)
    y = torch.sin(4 * x)
    fast = adapt(x[:10], y[:10])
    loss = (functional_call(model, fast, (x[10:],)) - y[10:]).pow(2).mean()
    meta.zero_grad()
    loss.backward()
    meta.step()
    reptile(x, y)
    print(it, loss.item())
