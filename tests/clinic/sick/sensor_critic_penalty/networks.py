from torch import nn


class Generator(nn.Module):
    def __init__(self, noise=8, channels=3, length=16):
        super().__init__()
        self.channels, self.length = channels, length
        self.net = nn.Sequential(
            nn.Linear(noise, 48), nn.LeakyReLU(0.2), nn.Linear(48, channels * length), nn.Tanh()
        )

    def forward(self, z):
        return self.net(z).view(-1, self.channels, self.length)


class Critic(nn.Module):
    def __init__(self, channels=3, length=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(channels, 12, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv1d(12, 16, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
        )
        self.score = nn.Linear(16 * (length // 4), 1)

    def forward(self, x):
        return self.score(self.conv(x).flatten(1))
