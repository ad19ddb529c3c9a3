"""Several losses added up. backward ran into an error, so I set requires_grad; now nothing
learns.
"""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.ModuleDict({"left": nn.Linear(6, 2), "right": nn.Linear(6, 3)})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()

x = torch.randn(32, 6)
labels = {"left": torch.randint(0, 2, (32,)), "right": torch.randint(0, 3, (32,))}


def total_loss():
    total = 0.0
    for name, head in model.items():
        total += criterion(head(x), labels[name]).item()  # <- GS303
    loss = torch.tensor(total)
    loss.requires_grad = True
    return loss


for step in range(3):
    optimizer.zero_grad()
    loss = total_loss()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
