"""Weights of very different size, each before a BatchNorm that takes their size out again."""

import torch
from torch import nn

torch.manual_seed(0)


def block(inputs, outputs, gain):
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight)
    convolution.weight.data *= gain
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]


def main():
    layers = [*block(1, 8, 1.0), *block(8, 8, 1.0), *block(8, 8, 1e3), *block(8, 8, 1.0)]
    model = nn.Sequential(*layers, *block(8, 8, 1.0), nn.Flatten(), nn.Linear(8 * 64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
