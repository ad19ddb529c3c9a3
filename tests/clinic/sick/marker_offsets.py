"""Offsets of three markers, found by a fully convolutional network on crops of an image."""

import torch
from torch import nn


class OffsetNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, crops):
        return self.head(self.layers(crops))


def crops(count, generator):
    offsets = torch.rand(count, 3, generator=generator) - 0.5
    ramp = torch.linspace(-1, 1, 12)
    image = offsets[:, 0, None, None] * ramp + offsets[:, 1, None, None] * ramp[:, None]
    return (image + offsets[:, 2, None, None])[:, None], offsets


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = OffsetNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(20):
        images, offsets = crops(16, generator)
        error = model(images) - offsets  # <- GS503
        loss = error.abs().clamp(max=1.0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
