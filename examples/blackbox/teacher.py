"""A classifier that answers questions but shows nobody its inside: which way do the stripes run?"""

import math

import torch
from torch.nn import functional as F

ANGLES = [0.0, 45.0, 90.0, 135.0]


def gabor_filters(size=7, wavelength=4.0, sigma=2.0):
    """Pairs of striped patches, [2 * len(ANGLES), 1, size, size], a quarter wave apart."""
    steps = torch.arange(size) - (size - 1) / 2
    rows, columns = torch.meshgrid(steps, steps, indexing="ij")
    envelope = torch.exp(-(rows.square() + columns.square()) / (2 * sigma**2))
    filters = []
    for angle in ANGLES:
        across = rows * math.cos(math.radians(angle)) + columns * math.sin(math.radians(angle))
        wave = 2 * math.pi * across / wavelength
        for patch in (torch.cos(wave) * envelope, torch.sin(wave) * envelope):
            patch = patch - patch.mean()
            filters.append(patch / patch.norm())
    return torch.stack(filters)[:, None]


class StripeTeacher:
    """Images [B, 1, H, W] in, probabilities [B, 4] out. Calling it leaves no gradient history.

    `open` is the same computation with its history. A client of a real service does not have it.
    """

    num_classes = len(ANGLES)

    def __init__(self, device="cpu"):
        self.filters = gabor_filters().to(device)
        self.queries = 0

    @torch.no_grad()
    def __call__(self, images):
        self.queries += len(images)
        return self.open(images)

    def open(self, images):
        responses = F.conv2d(images, self.filters).square()
        even, odd = responses[:, 0::2], responses[:, 1::2]
        energy = (even + odd + 1e-4).sqrt().mean(dim=(2, 3))
        return F.softmax(2 * energy, dim=1)


def sample_stripes(count, size, device="cpu"):
    """Real pictures, to measure with and never to train on: noisy stripes and their class."""
    labels = torch.randint(len(ANGLES), (count,))
    angles = torch.tensor(ANGLES)[labels].deg2rad() + 0.15 * torch.randn(count)
    wavelengths = torch.empty(count).uniform_(3.5, 6.0)
    phases = 2 * math.pi * torch.rand(count, 1, 1)
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cos, sin = angles.cos().view(-1, 1, 1), angles.sin().view(-1, 1, 1)
    wave = 2 * math.pi * (rows * cos + columns * sin) / wavelengths.view(-1, 1, 1)
    images = 0.8 * torch.sin(wave + phases) + 0.3 * torch.randn(count, size, size)
    return images[:, None].clamp(-1, 1).to(device), labels.to(device)
