from torch import nn


class FaceNet(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.PReLU(8),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.PReLU(16),
        )
        self.embed = nn.Sequential(nn.Flatten(), nn.Linear(16 * 9, embedding))

    def forward(self, x):
        return self.embed(self.features(x))
