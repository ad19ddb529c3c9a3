"""LoRA adapters get gradients (not None) but never leave zero."""

import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, inputs, outputs, rank=2):
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.down = nn.Parameter(torch.zeros(inputs, rank))  # <~ GS205
        self.up = nn.Parameter(torch.zeros(rank, outputs))  # <~ GS205

    def forward(self, x):
        update = (x @ self.down) @ self.up  # <- GS205
        return self.base(x) + update


x = torch.randn(64, 8)
y = torch.randn(64, 4)
model = Adapted(8, 4)
optimizer = torch.optim.SGD(
    [
        {"params": model.base.parameters(), "lr": 1e-3},
        {"params": [model.down, model.up], "lr": 1e-1},
    ]
)
for step in range(4):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
