"""UserWarning: None of the inputs have requires_grad=True. The first block does not learn."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 24))
        self.block = nn.Sequential(nn.Linear(24, 24), nn.Tanh())
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        x = checkpoint(self.stem, x, use_reentrant=True)  # <- GS303
        x = self.block(x)
        return self.head(x)


x, y = torch.randn(18, 24), torch.randint(0, 5, (18,))
model = Vision()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
