"""The loss falls, then oscillates and explodes. A smaller learning rate only delays it."""

import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion

    def train_epoch(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            loss.backward()  # <- GS501
            self.optimizer.step()  # <~ GS501
        return loss.item()


x = torch.randn(60, 5)
y = x @ torch.randn(5, 1)
loader = [(x[i : i + 15], y[i : i + 15]) for i in range(0, 60, 15)]
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.05), nn.MSELoss())
for epoch in range(3):
    print(f"epoch {epoch} loss {trainer.train_epoch(loader):.4f}")
