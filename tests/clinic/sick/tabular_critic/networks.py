import torch
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.fc = nn.Linear(width, out)
        self.norm = nn.BatchNorm1d(out)

    def forward(self, x):
        return torch.cat([torch.relu(self.norm(self.fc(x))), x], dim=1)


class RowGenerator(nn.Module):
    def __init__(self, noise_dim, hidden, columns):
        super().__init__()
        self.blocks = nn.Sequential(
            ResidualBlock(noise_dim, hidden), ResidualBlock(noise_dim + hidden, hidden)
        )
        self.out = nn.Linear(noise_dim + 2 * hidden, columns)

    def forward(self, z):
        return torch.tanh(self.out(self.blocks(z)))


class RowCritic(nn.Module):
    def __init__(self, columns, hidden, pac=2):
        super().__init__()
        self.pac = pac
        self.body = nn.Sequential(
            nn.Linear(columns * pac, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, 1),
        )

    def forward(self, rows):
        return self.body(rows.reshape(rows.shape[0] // self.pac, -1))
