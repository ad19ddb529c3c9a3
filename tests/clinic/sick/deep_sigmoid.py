"""A deep network learns only in its last layers; the first ones keep their initial weights."""

import torch
from torch import nn

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, depth=20, width=16):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        h = self.enter(x)
        for layer in self.layers:
            h = torch.sigmoid(layer(h))  # <- GS201
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
