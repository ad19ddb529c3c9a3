"""A layer defined by its fixed point: iterated without a graph, one step with it."""

import torch
import torch.nn.functional as F
from torch import nn


class Equilibrium(nn.Module):
    def __init__(self, width, iterations=25):
        super().__init__()
        self.recur = nn.utils.parametrizations.spectral_norm(nn.Linear(width, width))
        self.inject = nn.Linear(width, width)
        self.iterations = iterations

    def cell(self, z, x):
        return torch.tanh(0.8 * self.recur(z) + self.inject(x))

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(self.iterations):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if not self.training:
            return z
        start = z.clone().detach().requires_grad_()
        again = self.cell(start, x)

        def solve(grad):
            total = grad
            for _ in range(self.iterations):
                (pulled,) = torch.autograd.grad(again, start, total, retain_graph=True)
                total = grad + pulled
            return total

        z.register_hook(solve)
        return z


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(6, 16)
        self.core = Equilibrium(16)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.core(torch.relu(self.inp(x))))


def main():
    torch.manual_seed(0)
    x = torch.randn(96, 6)
    y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0).long()
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(5):
        net.train()
        for index in torch.randperm(96).split(32):
            loss = F.cross_entropy(net(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(x).argmax(1) == y).float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy.item():.3f}")


if __name__ == "__main__":
    main()
