"""A neural ODE learns a spiral: few calls of backward, each through hundreds of tiny operations.

The steps of Bogacki and Shampine's method are as long as their error allows, so that each epoch has
a graph of its own size.
"""

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, state):
        return self.net(state**3)


def solve(field, state, times, tolerance=2e-4):
    path, now, step = [state], times[0], 0.1
    for end in times[1:]:
        while now < end:
            step = min(step, end - now)
            k1 = field(state)
            k2 = field(state + step / 2 * k1)
            k3 = field(state + 3 * step / 4 * k2)
            there = state + step * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
            k4 = field(there)
            error = step * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
            size = error.abs().max().item()
            if size < tolerance:
                state, now = there, end if step == end - now else now + step
            step *= min(2.0, max(0.3, 0.9 * (tolerance / (size + 1e-12)) ** (1 / 3)))
        path.append(state)
    return torch.stack(path)


def main():
    torch.manual_seed(0)
    times = [0.1 * number for number in range(13)]
    turning = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    starts = torch.randn(32, 2)
    truth = solve(lambda state: state**3 @ turning, starts, times)

    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=0.02)
    for epoch in range(12):
        loss = (solve(field, starts, times) - truth).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
