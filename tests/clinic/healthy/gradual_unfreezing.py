"""Fine-tuning with parameter groups: the trunk is frozen at first, then added."""

import torch
from torch import nn

torch.manual_seed(0)

trunk = nn.Sequential(nn.Linear(9, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU())
head = nn.Linear(16, 3)
trunk.requires_grad_(False)
optimizer = torch.optim.AdamW([{"params": head.parameters(), "lr": 1e-2}])
x, y = torch.randn(45, 9), torch.randint(0, 3, (45,))

for epoch in range(5):
    if epoch == 2:
        trunk.requires_grad_(True)
        optimizer.add_param_group({"params": trunk.parameters(), "lr": 1e-3})
    loss = nn.functional.cross_entropy(head(trunk(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
