"""RuntimeError: Inference tensors cannot be saved for backward."""

import torch
from torch import nn

torch.manual_seed(0)


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    @torch.inference_mode()  # <~ GS303
    def features(self, x):
        return torch.tanh(self.layer(x))  # <- GS303


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 1)

    def forward(self, h):
        return self.out(h)


trunk, head = Trunk(), Head()
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(20, 8), torch.randn(20, 1)
for step in range(3):
    prediction = head(trunk.features(x))
    loss = nn.functional.mse_loss(prediction, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
