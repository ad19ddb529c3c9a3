"""Group lasso on my weights: pruned rows turn into NaN after the first step."""

import torch
from torch import nn


def group_lasso(module):
    squares = (module.weight**2).sum(dim=1)
    return (squares**0.5).sum()  # <- GS102


def main():
    torch.manual_seed(0)
    layer = nn.Linear(6, 10)
    readout = nn.Linear(10, 1)
    with torch.no_grad():
        layer.weight[::4] = 0.0

    x = torch.randn(32, 6)
    y = x[:, :1] * 2 - x[:, 1:2]
    optimizer = torch.optim.SGD([*layer.parameters(), *readout.parameters()], lr=0.01)

    for epoch in range(5):
        fit = nn.functional.mse_loss(readout(layer(x)), y)
        loss = fit + 1e-3 * group_lasso(layer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} fit {fit.item():.4f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
