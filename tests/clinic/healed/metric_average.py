"""ImageNet example: the averaged training loss leaks until out of memory."""

import torch
from torch import nn, optim


class Metric:
    def __init__(self, name):
        self.name = name
        self.sum = torch.tensor(0.0)
        self.n = torch.tensor(0.0)

    def update(self, val):
        self.sum += val.detach()
        self.n += 1

    @property
    def avg(self):
        return self.sum / self.n


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean()


def train(epoch, model, optimizer, loader):
    model.train()
    train_loss, train_accuracy = Metric("train_loss"), Metric("train_accuracy")
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = nn.functional.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        train_accuracy.update(accuracy(output, target))
        train_loss.update(loss)
    print(f"epoch {epoch} {train_loss.avg.item():.4f} {train_accuracy.avg.item():.2f}")


def loader(n):
    g = torch.Generator().manual_seed(3)
    for _ in range(n):
        yield torch.randn(8, 6, generator=g), torch.randint(0, 4, (8,), generator=g)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 4))
optimizer = optim.SGD(model.parameters(), lr=0.0125, momentum=0.9)
for epoch in range(2):
    train(epoch, model, optimizer, loader(6))
