"""Population based training: the worst copy the best from time to time and vary its settings."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, features, classes, width=24):
        super().__init__()
        self.hidden = nn.Linear(features, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.hidden(x))))


class Member:
    def __init__(self, number, model, lr):
        self.number = number
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.score = 0.0

    @property
    def lr(self):
        return self.optimizer.param_groups[0]["lr"]

    def train(self, batches):
        self.model.train()
        for x, y in batches:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        self.score = (self.model(x).argmax(1) == y).float().mean().item()
        return self.score

    def exploit(self, best):
        self.model = copy.deepcopy(best.model)  # <- GS000

    def explore(self, generator):
        factor = 0.8 if torch.rand((), generator=generator) < 0.5 else 1.2
        for group in self.optimizer.param_groups:
            group["lr"] *= factor


def make_data(rows, generator):
    x = torch.randn(rows, 8, generator=generator)
    y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0.5).long()
    return x, y


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    x, y = make_data(192, generator)
    val_x, val_y = make_data(128, generator)
    population = [Member(i, Net(8, 3), lr) for i, lr in enumerate((0.3, 0.1, 0.01))]
    for generation in range(4):
        for member in population:
            order = torch.randperm(len(x), generator=generator).split(64)
            loss = member.train([(x[i], y[i]) for i in order])
            member.evaluate(val_x, val_y)
            print(f"gen {generation} member {member.number} lr {member.lr:.3f} loss {loss:.4f}")
        ranking = sorted(population, key=lambda m: m.score)
        ranking[0].exploit(ranking[-1])
        ranking[0].explore(generator)
        print("scores", [round(m.score, 3) for m in population])


if __name__ == "__main__":
    main()
