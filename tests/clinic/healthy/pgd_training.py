"""Adversarial training: sign and clamp on gradients, not on the way of them."""

import torch
from torch import nn


def pgd(model, x, y, eps=0.1, alpha=0.03, iters=3):
    adv = (x + torch.empty_like(x).uniform_(-eps, eps)).clamp(0, 1)
    for _ in range(iters):
        adv = adv.detach().requires_grad_(True)
        loss = nn.functional.cross_entropy(model(adv), y)
        (g,) = torch.autograd.grad(loss, adv)
        adv = adv.detach() + alpha * g.sign()
        adv = torch.min(torch.max(adv, x - eps), x + eps).clamp(0, 1)
    return adv.detach()


torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    x, y = torch.rand(16, 1, 8, 8), torch.randint(0, 5, (16,))
    adv = pgd(model, x, y)
    loss = nn.functional.cross_entropy(model(adv), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
