"""Binary activations with a straight-through estimator: sign forward, identity backward."""

import torch
from torch import nn

torch.manual_seed(0)


def binarise(x):
    return x + (torch.sign(x) - x).detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.leave = nn.Linear(16, 1)

    def forward(self, x):
        return self.leave(binarise(torch.tanh(self.enter(x))))


x = torch.randn(50, 8)
y = x[:, :1] * 2
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
