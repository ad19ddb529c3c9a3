"""torch.where protects log from zeros, the loss is finite, but the gradients are NaN."""

import torch
from torch import nn

torch.manual_seed(0)


class LogScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, amount):
        amount = amount * self.scale
        positive = amount > 0
        logs = torch.log(amount)  # <- GS102
        return torch.where(positive, logs, torch.zeros_like(logs))


amounts = torch.tensor([[0.0, 2.0, 3.0], [1.0, 0.5, 0.0], [4.0, 0.1, 2.5]])
target = torch.tensor([[0.5], [-0.2], [1.0]])

model = nn.Sequential(LogScale(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for _step in range(3):
    prediction = model(amounts)
    loss = nn.functional.mse_loss(prediction, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
