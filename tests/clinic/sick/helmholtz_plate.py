"""A physics-informed net for the Helmholtz equation on the unit square."""

import math

import torch
import torch.nn as nn

K = 1.0
A1, A2 = 1.0, 2.0


class FieldNet(nn.Module):
    def __init__(self, width: int = 32, depth: int = 3):
        super().__init__()
        sizes = [2] + [width] * depth + [1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        for layer in self.layers:
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, points):
        h = 2 * points - 1
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return self.layers[-1](h)


def exact(points):
    x, y = points[:, 0:1], points[:, 1:2]
    return torch.sin(A1 * math.pi * x) * torch.sin(A2 * math.pi * y)


def source(points):
    return (K**2 - (A1 * math.pi) ** 2 - (A2 * math.pi) ** 2) * exact(points)


def boundary_points(n: int):
    t = torch.rand(4 * n, 1)
    side = torch.arange(4 * n) % 4
    fixed = (side % 2).float()[:, None]
    return torch.where((side < 2)[:, None], torch.cat([t, fixed], 1), torch.cat([fixed, t], 1))


class HelmholtzProblem:
    def __init__(self, net: nn.Module):
        self.net = net

    def residual(self, points):
        g = points.clone().requires_grad_(True)
        u = self.net(g)
        u_x = torch.autograd.grad(u, g, torch.ones_like(u), create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, g, torch.ones_like(u_x), create_graph=True)[0]  # <- GS520
        laplace = u_xx[:, 0:1] + u_xx[:, 1:2]
        return laplace + K**2 * u - source(points)

    def loss(self, inner, edge):
        pde = self.residual(inner).square().mean()
        rim = self.net(edge).square().mean()
        return 0.01 * pde + rim, pde, rim


def main():
    torch.manual_seed(1234)
    net = FieldNet()
    problem = HelmholtzProblem(net)
    inner, edge = torch.rand(256, 2), boundary_points(32)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    for step in range(40):
        loss, pde, rim = problem.loss(inner, edge)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 10 == 9:
            with torch.no_grad():
                error = (net(inner) - exact(inner)).norm() / exact(inner).norm()
            print(f"step {step + 1}: pde {pde:.3f}  rim {rim:.4f}  relative error {error:.3f}")


if __name__ == "__main__":
    main()
