"""My gradients differ from finite differences by a factor. There is no error message."""

import torch
from torch import nn

torch.manual_seed(0)


class GatedUnit(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 6)
        self.value = nn.Linear(6, 6)

    def forward(self, x, closed):
        gate = torch.sigmoid(self.gate(x))  # <~ GS401
        gate.data[:, closed] = 0.9  # <- GS401
        return gate * self.value(x)


closed = torch.tensor([True, False, False, True, False, False])
x, y = torch.randn(22, 6), torch.randn(22, 6)
model = GatedUnit()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = nn.functional.mse_loss(model(x, closed), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
