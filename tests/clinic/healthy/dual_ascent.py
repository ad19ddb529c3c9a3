"""Constrained training: a multiplier as a bare Parameter, moved by hand against its gradient."""

import torch
from torch import nn

torch.manual_seed(0)


class Constrained(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.scale = torch.ones(2)

    def forward(self, x):
        return self.net(x) * self.scale


model = Constrained()
multiplier = nn.Parameter(torch.zeros(1))
slack = nn.ParameterDict({"budget": nn.Parameter(torch.ones(1))})
optimizer = torch.optim.SGD([*model.parameters(), *slack.parameters()], lr=0.05)
for step in range(5):
    x, y = torch.randn(20, 4), torch.randint(0, 2, (20,))
    logits = model(x)
    violation = logits.pow(2).mean() - slack["budget"]
    loss = nn.functional.cross_entropy(logits, y) + multiplier * violation + slack["budget"].pow(2)
    optimizer.zero_grad()
    multiplier.grad = None
    loss.sum().backward()
    optimizer.step()
    with torch.no_grad():
        multiplier += 0.1 * multiplier.grad
        multiplier.clamp_(min=0)
    print(step, loss.item(), multiplier.item(), float(violation.detach()))
