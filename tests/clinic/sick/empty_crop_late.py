"""Crops get smaller from epoch to epoch; in the eleventh step one has no foreground pixel left."""

import torch
from torch import nn

torch.manual_seed(0)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1))

    def forward(self, image):
        return self.body(image)


def foreground_loss(scores, mask):
    errors = nn.functional.softplus(-scores) * mask
    per_image = errors.sum((1, 2, 3)) / mask.sum((1, 2, 3))  # <- GS101
    return per_image.mean()


def crops(size):
    image = torch.randn(4, 1, 24, 24)
    mask = torch.zeros(4, 1, 24, 24)
    mask[:, :, 4:12, 4:12] = 1
    return image[:, :, -size:, -size:], mask[:, :, -size:, -size:]


net = Segmenter()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(14):
    image, mask = crops(22 - step)
    loss = foreground_loss(net(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
