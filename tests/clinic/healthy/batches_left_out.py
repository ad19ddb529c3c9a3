"""Gradients that are computed and dropped on purpose: to measure their norm, to find a direction
for the input, and where a batch is left out because its gradient is too large."""

import torch
from torch import nn
from torch.nn import functional as F


def hardest(model, optimizer, x, y, radius=0.3):
    """The input a little way along the gradient of the loss."""
    moved = x.clone().requires_grad_()
    F.cross_entropy(model(moved), y).backward()
    direction = moved.grad.sign()
    optimizer.zero_grad()
    return x + radius * direction


def too_large(model, limit=6.0):
    norms = torch.stack([p.grad.norm() for p in model.parameters()])
    return norms.norm() > limit


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    left_out, measured = 0, 0.0
    for step in range(12):
        y = torch.randint(3, (32,))
        x = torch.randn(32, 6) + F.one_hot(y, 6)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        measured = nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item()

        x = hardest(model, optimizer, x, y)
        if step % 2:
            x = 8 * x
        F.cross_entropy(model(x), y).backward()
        if too_large(model):
            left_out += 1
            optimizer.zero_grad()
            continue
        optimizer.step()
    print(f"left out {left_out}, last norm {measured:.3f}")


if __name__ == "__main__":
    main()
