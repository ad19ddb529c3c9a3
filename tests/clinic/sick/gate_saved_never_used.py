"""A gated block whose parameters are cast, averaged, saved and logged, as in many trainers."""

import copy
import io

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.full((width,), 0.1))  # <- GS301

    def forward(self, x):
        return x + torch.tanh(self.mix(x))


class Model(nn.Module):
    def __init__(self, width=12, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def average(slow, fast, rate=0.9):
    for old, new in zip(slow.parameters(), fast.parameters(), strict=True):
        old.data = old.data * rate + (1 - rate) * new.data


def main():
    torch.manual_seed(0)
    model = Model().double()
    slow = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    best = float("inf")
    for step in range(8):
        x = torch.randn(32, 12, dtype=torch.double)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average(slow, model)
        if loss.item() < best:
            best = loss.item()
            torch.save(model.state_dict(), io.BytesIO())
        with torch.no_grad():
            size = sum(one.norm() for one in model.parameters()).item()
        print(f"step {step} loss {loss.item():.3f} size {size:.2f}")


if __name__ == "__main__":
    main()
