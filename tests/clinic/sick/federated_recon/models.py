from torch import nn


class UnetLike(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, image):
        latent = self.down(image)
        return image + self.up(latent), latent


class SiteDiscriminator(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = nn.Sequential(
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * channels, 16),
            nn.LeakyReLU(0.2),
            nn.Linear(16, 1),
        )

    def forward(self, latent):
        return self.net(latent)
