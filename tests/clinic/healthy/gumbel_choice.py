"""A discrete choice by hard Gumbel softmax."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Chooser(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 5)
        self.options = nn.Parameter(torch.randn(5, 6))

    def forward(self, x, temperature):
        choice = F.gumbel_softmax(self.score(x), tau=temperature, hard=True)
        return choice @ self.options, choice.argmax(dim=1)


x = torch.randn(48, 6)
model = Chooser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(5):
    restored, picked = model(x, temperature=1.0 - 0.1 * step)
    loss = F.mse_loss(restored, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f} used {picked.unique().numel()}")
