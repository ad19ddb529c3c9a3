"""A program whose graph has about as many nodes as asked for; see page.py.

page_program.py lstm|transformer NODES
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 8


class Cell(nn.Module):
    """One step of an LSTM, in operations of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Linear(WIDTH, 4 * WIDTH)
        self.h = nn.Linear(WIDTH, 4 * WIDTH)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class Lstm(nn.Module):
    """Four layers, unrolled."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList(Cell() for _ in range(4))

    def forward(self, xs: Sequence[Tensor]) -> Tensor:
        states = [(torch.zeros(2, WIDTH), torch.zeros(2, WIDTH)) for _ in self.cells]
        for x in xs:
            for number, cell in enumerate(self.cells):
                states[number] = cell(x, *states[number])
                x = states[number][0]
        return x


class Block(nn.Module):
    """Attention and a perceptron, each around a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attend = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attend(self.ln_1(x)).chunk(3, -1)
        weights = (q @ k.transpose(-1, -2) / WIDTH**0.5).softmax(-1)
        x = x + self.project(weights @ v)
        refined: Tensor = self.mlp(self.ln_2(x))
        return x + refined


def loss_of(kind: str, nodes: int) -> Tensor:
    """A loss with such a graph."""
    if kind == "lstm":
        steps = max(nodes // 60, 1)  # 15 nodes a cell
        last: Tensor = Lstm()(torch.randn(steps, 2, WIDTH))
        return last.pow(2).mean()
    blocks = nn.Sequential(*(Block() for _ in range(max(nodes // 55, 1))))
    return F.mse_loss(blocks(torch.randn(2, 4, WIDTH)), torch.zeros(2, 4, WIDTH))


if __name__ == "__main__":
    torch.manual_seed(0)
    loss_of(sys.argv[1], int(sys.argv[2])).backward()  # type: ignore[no-untyped-call]
