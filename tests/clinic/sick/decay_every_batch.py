"""After the second epoch nothing moves any more. More epochs do not help."""

import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, features=8, hidden=24, classes=3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, x):
        return self.net(x)


class Trainer:
    def __init__(self, model, lr=0.05, milestones=(8, 12), factor=0.0):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.milestones, self.factor = milestones, factor
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rate)

    def rate(self, epoch):
        warm, last = self.milestones
        return min(1.0, max(self.factor, (last - epoch) / (last - warm)))

    def train_step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()  # <- GS514
        return loss.item()


trainer = Trainer(Classifier())
for epoch in range(14):
    total = 0.0
    for _ in range(3):
        y = torch.randint(3, (16,))
        total += trainer.train_step(torch.randn(16, 8) + y[:, None], y)
    print(f"epoch {epoch} loss {total / 3:.4f}")
