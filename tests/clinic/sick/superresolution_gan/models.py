import torch.nn as nn


class ResidualConvBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.rcb = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.PReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return x + self.rcb(x)


class Generator(nn.Module):
    def __init__(self, channels=8, blocks=2):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(3, channels, 5, padding=2), nn.PReLU())
        self.trunk = nn.Sequential(*[ResidualConvBlock(channels) for _ in range(blocks)])
        self.upsampling = nn.Sequential(
            nn.Conv2d(channels, 4 * channels, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()
        )
        self.conv2 = nn.Conv2d(channels, 3, 5, padding=2)

    def forward(self, x):
        out = self.conv1(x)
        return self.conv2(self.upsampling(out + self.trunk(out)))


class Discriminator(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, channels, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(channels, channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.LeakyReLU(0.2),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(4 * channels, 1)

    def forward(self, x):
        return self.classifier(self.features(x))


class ContentFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.eval()
        for p in self.parameters():
            p.requires_grad = False

    def forward(self, sr, hr):
        return nn.functional.mse_loss(self.layers(sr), self.layers(hr))
