"""A trainable optimizer: print(eta.fc.weight.grad) says None after the outer backward."""

import torch
from torch import nn

torch.manual_seed(0)


class Eta(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1, 1)

    def forward(self, loss):
        return torch.nn.functional.softplus(self.fc(loss.detach().view(1, 1))).squeeze()


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.body(x)


def inner_step(learner, eta, x, y):
    loss = (learner(x) - y).pow(2).mean()
    grads = torch.autograd.grad(loss, list(learner.parameters()))
    rate = eta(loss)
    for p, g in zip(learner.parameters(), grads, strict=False):
        p.data = p.data - rate * g  # <- GS303


learner, eta = Learner(), Eta()
outer = torch.optim.Adam([*learner.parameters(), *eta.parameters()], lr=1e-2)
for it in range(4):
    for _ in range(2):
        inner_step(learner, eta, torch.randn(10, 3), torch.randn(10, 1))
    outer_loss = (learner(torch.randn(10, 3)) - torch.randn(10, 1)).pow(2).mean()
    outer.zero_grad()
    outer_loss.backward()
    print(it, outer_loss.item(), eta.fc.weight.grad)
    outer.step()
