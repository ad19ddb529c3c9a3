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
    weights = dict(learner.named_parameters())
    loss = (learner(x) - y).pow(2).mean()
    grads = torch.autograd.grad(loss, weights.values())
    rate = eta(loss)
    return {k: w - rate * g for (k, w), g in zip(weights.items(), grads, strict=False)}


learner, eta = Learner(), Eta()
outer = torch.optim.Adam([*learner.parameters(), *eta.parameters()], lr=1e-2)
for it in range(4):
    fast = inner_step(learner, eta, torch.randn(10, 3), torch.randn(10, 1))
    predicted = torch.func.functional_call(learner, fast, (torch.randn(10, 3),))
    outer_loss = (predicted - torch.randn(10, 1)).pow(2).mean()
    outer.zero_grad()
    outer_loss.backward()
    print(it, outer_loss.item(), eta.fc.weight.grad)
    outer.step()
