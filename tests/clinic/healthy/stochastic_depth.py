"""A residual network of which some blocks are left out at random in every step."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, survival):
        super().__init__()
        self.survival = survival
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width, momentum=0.3),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width, momentum=0.3),
        )

    def forward(self, x):
        if self.training:
            if torch.rand(()).item() > self.survival:
                return x
            return F.relu(x + self.body(x) / self.survival)
        return F.relu(x + self.body(x))


class StochasticNet(nn.Module):
    def __init__(self, depth=6, width=8, classes=4, last_survival=0.5):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        rates = [1 - (i + 1) / depth * (1 - last_survival) for i in range(depth)]
        self.blocks = nn.ModuleList(Block(width, rate) for rate in rates)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=(2, 3)))


def stripes(count, generator, size=8):
    label = torch.randint(0, 4, (count,), generator=generator)
    grid = torch.arange(size)
    horizontal = ((grid % 2) * 1.0)[None, :].expand(size, size)
    coarse = ((grid // 2 % 2) * 1.0)[None, :].expand(size, size)
    kinds = torch.stack([horizontal, horizontal.t(), coarse, coarse.t()])
    image = kinds[label] + 0.3 * torch.randn(count, size, size, generator=generator)
    return image.unsqueeze(1), label


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    net = StochasticNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for step in range(20):
        net.train()
        x, y = stripes(16, generator)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            net.eval()
            with torch.no_grad():
                x, y = stripes(32, generator)
                accuracy = (net(x).argmax(1) == y).float().mean().item()
            print(f"step {step + 1} loss {loss.item():.4f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
