"""Healed. The first half is replaced, not edited."""

import torch
from torch import nn

torch.manual_seed(0)


class GatedLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.both = nn.Linear(inputs, 2 * outputs)

    def forward(self, x):
        value, gate = self.both(x).chunk(2, dim=-1)
        value = value * torch.sigmoid(gate)
        return value


model = nn.Sequential(GatedLinear(5, 12), GatedLinear(12, 12), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(33, 5)
y = x.norm(dim=1, keepdim=True)
for epoch in range(3):
    optimizer.zero_grad()
    loss = (model(x) - y).abs().mean()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
