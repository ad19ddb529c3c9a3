import torch
import torch.nn as nn
import torch.nn.functional as F


class SceneEncoder(nn.Module):
    """Image of a room -> feature vector."""

    def __init__(self, feat_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(64, feat_dim),
        )

    def forward(self, image):
        return self.net(image)


class SpecGenerator(nn.Module):
    """Feature vector and noise -> spectrogram of an impulse response."""

    def __init__(self, feat_dim, noise_dim):
        super().__init__()
        self.noise_dim = noise_dim
        self.fc = nn.Linear(feat_dim + noise_dim, 32 * 4 * 4)
        self.up = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, feat):
        z = torch.randn(feat.shape[0], self.noise_dim)
        h = F.relu(self.fc(torch.cat([feat, z], dim=1))).view(-1, 32, 4, 4)
        return torch.tanh(self.up(h))


class SpecDiscriminator(nn.Module):
    """Scores a spectrogram given the scene features."""

    def __init__(self, feat_dim):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
        )
        self.out = nn.Linear(32 * 4 * 4 + feat_dim, 1)

    def forward(self, spec, feat):
        return self.out(torch.cat([self.conv(spec).flatten(1), feat], dim=1))
