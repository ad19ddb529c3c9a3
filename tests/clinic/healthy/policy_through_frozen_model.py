"""A controller improved by the gradient of a learned world model, which it must not change."""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, state, action):
        return state + 0.1 * self.net(torch.cat([state, action], dim=-1))


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1), nn.Tanh())

    def forward(self, state):
        return self.net(state)


@contextlib.contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)


def real_step(state, action):
    position, speed = state.unbind(-1)
    speed = speed + 0.1 * (2 * action.squeeze(-1) - 0.5 * position.sin())
    return torch.stack([position + 0.1 * speed, speed], dim=-1)


def collect(controller, count, generator):
    state = torch.randn(count, 2, generator=generator)
    with torch.no_grad():
        noise = 0.5 * torch.randn(count, 1, generator=generator)
        action = (controller(state) + noise).clamp(-1, 1)
    return state, action, real_step(state, action)


def imagine(world, controller, state, horizon=6):
    cost = 0.0
    for _ in range(horizon):
        action = controller(state)
        state = world(state, action)
        cost = cost + state.pow(2).sum(-1).mean() + 0.01 * action.pow(2).mean()
    return cost / horizon


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    world, controller = WorldModel(), Controller()
    world_optimizer = torch.optim.Adam(world.parameters(), lr=1e-2)
    policy_optimizer = torch.optim.Adam(controller.parameters(), lr=5e-3)
    for cycle in range(6):
        for _ in range(4):
            state, action, following = collect(controller, 64, generator)
            world_loss = F.mse_loss(world(state, action), following) * 100
            world_optimizer.zero_grad()
            world_loss.backward()
            world_optimizer.step()
        for _ in range(2):
            start = torch.randn(64, 2, generator=generator)
            with frozen(world):
                cost = imagine(world, controller, start)
                policy_optimizer.zero_grad()
                cost.backward()
            policy_optimizer.step()
        print(f"cycle {cycle} model {world_loss.item():.4f} cost {cost.item():.4f}")


if __name__ == "__main__":
    main()
