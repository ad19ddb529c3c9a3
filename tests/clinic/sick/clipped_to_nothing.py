"""Training is extremely slow and the loss curve does not depend on the scale of the loss."""

import torch
from torch import nn

torch.manual_seed(0)

CLIP = 1e-4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.layers(x)


x = torch.randn(90, 6)
y = (x[:, :1] - x[:, 1:2]).abs()
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)  # <- GS504
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
