"""One of several equal layers is initialised with another unit than the rest."""

import torch
from torch import nn

torch.manual_seed(0)

CONFIG = {"widths": [16, 32, 32, 32, 32, 32], "scales": [1.0, 1.0, 1.0, 1e-6, 1.0]}


def build(widths, scales):
    layers = []
    for before, after, scale in zip(widths[:-1], widths[1:], scales, strict=True):
        layer = nn.Linear(before, after)
        nn.init.normal_(layer.weight, std=scale / before**0.5)  # <~ GS206
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1))


def main():
    model = build(**CONFIG)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        x = torch.randn(64, 16)
        prediction = model(x)  # <- GS206
        loss = nn.functional.mse_loss(prediction, x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
