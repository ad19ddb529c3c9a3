"""Healed. Residual blocks with ReLU and normalisation carry the gradient to the first layer."""

import torch
from torch import nn

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, depth=20, width=16):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(depth)])
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        h = self.enter(x)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = h + 0.2 * torch.relu(layer(norm(h)))
        return self.leave(h)


x = torch.randn(64, 4)
y = (x[:, :1] > 0).float()
model = Deep()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss()
for step in range(3):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.5f}")
