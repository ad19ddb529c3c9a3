"""A network in float16 whose loss is weighted down to next to nothing."""

import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, model, weight):
        self.model = model
        self.weight = weight
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1000.0)

    def loss(self, x, y):
        return nn.functional.mse_loss(self.model(x), y) * self.weight  # <- GS104

    def step(self, x, y):
        loss = self.loss(x, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item() / self.weight


def main():
    model = nn.Sequential(
        nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    ).half()
    trainer = Trainer(model, weight=1e-5)
    for step in range(4):
        x = torch.randn(64, 16).half()
        print(step, trainer.step(x, x[:, :1].sin()))


main()
