"""RuntimeError: Mismatch in shape: grad_output has a shape of [16] and output has [16, 1]."""

import torch
from torch import nn

torch.manual_seed(0)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 10), nn.Tanh(), nn.Linear(10, 1))

    def forward(self, positions):
        return self.net(positions)


positions = torch.randn(16, 3)
importance = torch.rand(16)
model = Energy()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

for step in range(3):
    optimizer.zero_grad()
    energy = model(positions)
    energy.backward(gradient=importance)  # <- GS403
    optimizer.step()
    print(f"step {step} loss {(energy[:, 0] * importance).sum().item():.4f}")
