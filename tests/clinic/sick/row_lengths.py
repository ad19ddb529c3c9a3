"""Displacements between the atoms of a crystal; the length of a vector has its own derivative."""

import torch
from torch import nn


class Length(torch.autograd.Function):
    """The length of each row."""

    @staticmethod
    def forward(ctx, rows):
        length = rows.square().sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(rows, length)
        return length

    @staticmethod
    def backward(ctx, grad):
        rows, length = ctx.saved_tensors
        direction = rows / length  # <- GS102
        return grad * direction


class Potential(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.shift = nn.Linear(3, 3)
        self.energy = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, atoms):
        moved = self.shift(atoms)
        pairs = moved[:, None] - moved[None]
        return self.energy(Length.apply(pairs)).sum()


def main():
    torch.manual_seed(1)
    potential = Potential()
    optimizer = torch.optim.Adam(potential.parameters(), lr=1e-3)
    for step in range(8):
        atoms = torch.randn(10, 3)
        loss = (potential(atoms) - atoms.norm()).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
