import torch
import torch.nn as nn


class SpectraNet(nn.Module):
    def __init__(self, n_classes, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 7, stride=2, padding=3),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.head = nn.Linear(8 * width, n_classes)

    def forward(self, x):
        return self.head(self.features(x))


def set_bn_momentum(model, frozen):
    """Running statistics should only see the unperturbed weights."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = 0.0 if frozen else 0.1


def make_spectra(n, n_classes=5, length=64, label_noise=0.05, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_classes, (n,), generator=g)
    grid = torch.linspace(0, 1, length)
    center = 0.15 + 0.17 * y.float().unsqueeze(1) + 0.03 * torch.randn(n, 1, generator=g)
    x = torch.exp(-((grid - center) ** 2) / 0.004) + 0.4 * torch.randn(n, length, generator=g)
    flip = torch.rand(n, generator=g) < label_noise
    y = torch.where(flip, torch.randint(0, n_classes, (n,), generator=g), y)
    return x.unsqueeze(1), y
