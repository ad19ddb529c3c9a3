"""Heavy dropout and stochastic depth: many gradients are exactly zero in a step."""

import torch
from torch import nn

torch.manual_seed(0)


class DropPath(nn.Module):
    def __init__(self, block, keep=0.7):
        super().__init__()
        self.block = block
        self.keep = keep

    def forward(self, x):
        if not self.training:
            return x + self.block(x)
        kept = (torch.rand(len(x), 1) < self.keep).float()
        return x + kept / self.keep * self.block(x)


def block(width):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.5))


model = nn.Sequential(
    nn.Linear(6, 20), DropPath(block(20)), DropPath(block(20)), nn.Dropout(0.3), nn.Linear(20, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x = torch.randn(40, 6)
y = x.abs().mean(dim=1, keepdim=True)
for epoch in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
