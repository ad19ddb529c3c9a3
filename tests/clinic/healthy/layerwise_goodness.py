"""The forward-forward algorithm: every layer learns on its own, nothing flows between them."""

import torch
import torch.nn.functional as F
from torch import nn


class GoodnessLayer(nn.Module):
    def __init__(self, inputs, outputs, lr, threshold=1.5):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.threshold = threshold
        self.optimizer = torch.optim.Adam(self.linear.parameters(), lr=lr)

    def forward(self, x):
        direction = x / (x.norm(dim=1, keepdim=True) + 1e-4)
        return F.leaky_relu(self.linear(direction), 0.1)

    def train_step(self, positive, negative):
        good = self(positive).pow(2).mean(1)
        bad = self(negative).pow(2).mean(1)
        margins = torch.cat([self.threshold - good, bad - self.threshold])
        loss = F.softplus(margins).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            return self(positive), self(negative), loss.item()


class Stack:
    def __init__(self, sizes, lr, classes):
        self.layers = [GoodnessLayer(a, b, lr) for a, b in zip(sizes, sizes[1:])]
        self.classes = classes

    def embed(self, x, y):
        return torch.cat([x, 3 * F.one_hot(y, self.classes).float()], dim=1)

    def train_step(self, x, y):
        wrong = (y + torch.randint(1, self.classes, y.shape)) % self.classes
        positive, negative = self.embed(x, y), self.embed(x, wrong)
        losses = []
        for layer in self.layers:
            positive, negative, loss = layer.train_step(positive, negative)
            losses.append(loss)
        return losses

    @torch.no_grad()
    def predict(self, x):
        scores = []
        for label in range(self.classes):
            h = self.embed(x, torch.full((len(x),), label))
            goodness = 0.0
            for layer in self.layers:
                h = layer(h)
                goodness = goodness + h.pow(2).mean(1)
            scores.append(goodness)
        return torch.stack(scores, 1).argmax(1)


def main():
    torch.manual_seed(0)
    centres = 2 * torch.randn(3, 8)
    y = torch.arange(3).repeat(32)
    x = centres[y] + 0.5 * torch.randn(96, 8)
    stack = Stack([11, 24, 24, 24], lr=1e-2, classes=3)
    for step in range(12):
        losses = stack.train_step(x, y)
        if step % 4 == 0:
            hits = (stack.predict(x) == y).float().mean().item()
            print(f"step {step}", [round(v, 3) for v in losses], f"accuracy {hits:.3f}")


if __name__ == "__main__":
    main()
