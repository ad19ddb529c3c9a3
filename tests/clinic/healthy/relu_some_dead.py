"""A plain ReLU classifier; some units are off for the whole batch, as always."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(
    nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(inplace=True), nn.Linear(64, 4)
)
with torch.no_grad():
    model[0].bias[:6] = -5.0
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
x = torch.randn(50, 3)
y = torch.randint(0, 4, (50,))
for epoch in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
