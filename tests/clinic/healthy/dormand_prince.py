"""A field that is learned through an adaptive Runge-Kutta method of order five."""

import torch

ROWS = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
FIFTH = [*ROWS[-1], 0.0]
FOURTH = [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]


def step(field, state, size):
    slopes = []
    for row in ROWS:
        there = state
        for factor, slope in zip(row, slopes, strict=True):
            there = there + size * factor * slope
        slopes.append(field(there))
    after, error = state, torch.zeros(())
    for fifth, fourth, slope in zip(FIFTH, FOURTH, slopes, strict=True):
        after = after + size * fifth * slope
        error = error + size * (fifth - fourth) * slope.detach()
    return after, error.abs().max()


def solve(field, state, tolerance=1e-2):
    time, size = 0.0, 0.1
    while time < 1.0:
        after, error = step(field, state, size)
        if error > tolerance:
            size /= 2
        else:
            state, time = after, time + size
    return state


torch.manual_seed(0)
field = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(field.parameters(), 1e-2)
starts, ends = torch.randn(8, 2), torch.randn(8, 2)
for _ in range(5):
    loss = (solve(field, starts) - ends).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
