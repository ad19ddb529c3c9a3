"""Healed. Rows with a missing value are dropped while reading."""

import math

import torch
from torch import nn

TABLE = """
21.5 0.31 1012
22.1 0.35 1011
19.8 nan 1013
20.4 0.29 1012
23.0 0.40 1009
"""


def read(text):
    rows = [[float(cell) for cell in line.split()] for line in text.strip().splitlines()]
    rows = [row for row in rows if not any(math.isnan(value) for value in row)]
    return torch.tensor(rows)


def main():
    torch.manual_seed(0)
    table = read(TABLE)
    scale = torch.tensor([20.0, 0.3, 1000.0])
    data = table / scale
    x, y = data[:, :2], data[:, 2:]
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(3):
        prediction = model(x)
        loss = nn.functional.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
