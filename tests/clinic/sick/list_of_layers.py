"""Making the network deeper changes nothing; only the last layer is in model.parameters()."""

import torch
from torch import nn

torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        self.layers = [nn.Linear(4 if i == 0 else width, width) for i in range(depth)]  # <- GS307
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.out(x)


x = torch.randn(48, 4)
y = x.prod(dim=1, keepdim=True)
model = MLP()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  # <~ GS307

for epoch in range(4):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
