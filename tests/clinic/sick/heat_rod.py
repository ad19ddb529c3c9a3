"""Physics-informed network for the heat equation on a rod with an unknown diffusivity."""

import math

import torch
from torch import nn

TRUE_ALPHA = 0.15


class ResidualLayer(nn.Module):
    def __init__(self, width, activation):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.act = activation()

    def forward(self, x):
        return x + self.act(self.lin(x))


class RodNet(nn.Module):
    def __init__(self, width=32, depth=3, activation=nn.ReLU):
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(2, width), activation())
        self.layers = nn.Sequential(*(ResidualLayer(width, activation) for _ in range(depth)))
        self.exit = nn.Linear(width, 1)
        self.log_alpha = nn.Parameter(torch.tensor(math.log(0.5)))

    def forward(self, x, t):
        return self.exit(self.layers(self.enter(torch.cat([x, t], dim=1))))


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def exact(x, t):
    return torch.exp(-TRUE_ALPHA * math.pi**2 * t) * torch.sin(math.pi * x)


class HeatProblem:
    def __init__(self, sensors=64, interior=128):
        self.x_obs, self.t_obs = torch.rand(sensors, 1), torch.rand(sensors, 1)
        self.u_obs = exact(self.x_obs, self.t_obs)
        self.interior = interior

    def data_loss(self, net):
        return (net(self.x_obs, self.t_obs) - self.u_obs).square().mean()

    def physics_loss(self, net):
        x = torch.rand(self.interior, 1, requires_grad=True)
        t = torch.rand(self.interior, 1, requires_grad=True)
        u = net(x, t)
        u_t = derivative(u, t)
        u_x = derivative(u, x)
        u_xx = derivative(u_x, x)
        return (u_t - net.log_alpha.exp() * u_xx).square().mean()  # <- GS000


def train(steps=40, weight=0.1):
    torch.manual_seed(17)
    problem, net = HeatProblem(), RodNet()
    optimizer = torch.optim.Adam(
        [
            {"params": [p for n, p in net.named_parameters() if n != "log_alpha"], "lr": 3e-3},
            {"params": [net.log_alpha], "lr": 2e-2},
        ]
    )
    for step in range(steps):
        data, physics = problem.data_loss(net), problem.physics_loss(net)
        loss = data + weight * physics
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(
                f"step {step + 1} data {data.item():.4f} physics {physics.item():.4f} "
                f"alpha {net.log_alpha.exp().item():.4f}"
            )


if __name__ == "__main__":
    train()
