"""Mixture of experts: the balance loss is printed, and stays at its first value for ever."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Gate(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.project = nn.Linear(dim, experts)
        self.loss = None

    def forward(self, x):
        scores = self.project(x).softmax(-1)
        value, index = scores.max(-1)
        load = F.one_hot(index, scores.shape[-1]).float().mean(0)
        self.loss = (scores.mean(0) * load).sum() * scores.shape[-1]
        return value, index


class Layer(nn.Module):
    def __init__(self, dim=8, experts=3):
        super().__init__()
        self.gate = Gate(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))

    def forward(self, x):
        value, index = self.gate(x)
        every = torch.stack([expert(x) for expert in self.experts], 1)
        return x + value[:, None] * every[torch.arange(len(x)), index]


def collect_balance_loss(model):
    loss_list = [m.loss for m in model.modules() if isinstance(m, Gate)]
    return torch.stack(loss_list).mean()


model = nn.Sequential(Layer(), Layer(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
for step in range(4):
    task = F.cross_entropy(model(x), y)
    balance = collect_balance_loss(model)
    loss = task + 0.1 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, task.item(), balance.item())
