"""Small layers between the layers of a network that is left as it is without a word: only they are
given to the optimizer; a network in the loss is left out, too; a copy made later learns by hand."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.adapter = nn.Sequential(nn.Linear(width, 2), nn.ReLU(), nn.Linear(2, width))

    def forward(self, x):
        x = torch.tanh(self.layer(x))
        return x + self.adapter(x)


class FeatureLoss(nn.Module):
    """Compares in the features of a network that was trained before."""

    def __init__(self, size):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, out, target):
        return F.mse_loss(self.net(out), self.net(target))


def adapted(model, x, y, rate=0.1):
    """Two steps by hand on a copy."""
    copied = copy.deepcopy(model)
    for _ in range(2):
        loss = F.mse_loss(copied(x), y)
        copied.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in copied.parameters():
                p.sub_(rate * p.grad)
    return F.mse_loss(copied(x), y).item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 24), Block(24), Block(24), nn.Linear(24, 3))
    criterion = FeatureLoss(3)
    adapters = [p for name, p in model.named_parameters() if "adapter" in name]
    optimizer = torch.optim.Adam(adapters, lr=1e-2)
    for step in range(8):
        x = torch.randn(32, 5)
        y = torch.stack([x[:, 0], x[:, 1] * x[:, 2], x[:, 3].abs()], dim=1)
        loss = criterion(model(x), y) + F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            print(f"step {step} loss {loss.item():.4f} after two steps {adapted(model, x, y):.4f}")


if __name__ == "__main__":
    main()
