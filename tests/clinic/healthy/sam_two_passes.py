"""Sharpness-aware minimisation: an own Optimizer with a closure and two steps."""

import torch
from torch import nn

torch.manual_seed(0)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step()
        closure()
        self.second_step()


model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for i in range(4):
    x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))

    def closure(x=x, y=y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step(closure)
    print(i, loss.item())
