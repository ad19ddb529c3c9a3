"""Healed. The head is swapped before the optimizer is made."""

import torch
from torch import nn

torch.manual_seed(0)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(12, 18), nn.Tanh())
        self.fc = nn.Linear(18, 100)

    def forward(self, x):
        return self.fc(self.features(x))


def finetune(model, x, y):
    model.fc = nn.Linear(18, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


finetune(Backbone(), torch.randn(36, 12), torch.randint(0, 3, (36,)))
