import torch
import torch.nn as nn
import torch.nn.functional as F


class Synthesizer(nn.Module):
    def __init__(self, content_dim=12, hidden=16, hop=4):
        super().__init__()
        self.pre = nn.Conv1d(content_dim, hidden, 3, padding=1)
        self.up = nn.ConvTranspose1d(hidden, hidden // 2, 2 * hop, stride=hop, padding=hop // 2)
        self.post = nn.Conv1d(hidden // 2, 1, 5, padding=2)

    def forward(self, content):
        x = F.leaky_relu(self.pre(content), 0.1)
        x = F.leaky_relu(self.up(x), 0.1)
        return torch.tanh(self.post(x))


class PeriodDiscriminator(nn.Module):
    def __init__(self, period, width=8):
        super().__init__()
        self.period = period
        self.conv1 = nn.Conv2d(1, width, (5, 1), (2, 1), padding=(2, 0))
        self.conv2 = nn.Conv2d(width, 1, (3, 1), padding=(1, 0))

    def forward(self, wave):
        batch, _, length = wave.shape
        wave = wave[..., : length - length % self.period]
        x = wave.view(batch, 1, -1, self.period)
        features = F.leaky_relu(self.conv1(x), 0.1)
        return self.conv2(features), features
