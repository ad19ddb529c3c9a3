"""RuntimeError: grad can be implicitly created only for scalar outputs."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(reduction="none")
rarity = torch.tensor([1.0, 3.0, 10.0])

x = torch.randn(40, 4)
y = torch.randint(0, 3, (40,))


def weighted_loss(scores, labels):
    return criterion(scores, labels) * rarity[labels]  # <~ GS403


for step in range(3):
    optimizer.zero_grad()
    loss = weighted_loss(model(x), y)
    loss.backward()  # <- GS403
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
