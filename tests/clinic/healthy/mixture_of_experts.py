"""Top-1 routing: some experts see no token in a batch and get no gradient in that step."""

import torch
from torch import nn

torch.manual_seed(5)


class Mixture(nn.Module):
    def __init__(self, width=8, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList([nn.Linear(width, width) for _ in range(experts)])

    def forward(self, x):
        weights = torch.softmax(self.router(x), dim=-1)
        strength, chosen = weights.max(dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(1)
            if rows.numel():
                out = out.index_add(0, rows, strength[rows, None] * expert(x[rows]))
        return x + out


model = nn.Sequential(nn.Linear(5, 8), Mixture(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(6):
    x = torch.randn(10, 5)
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
