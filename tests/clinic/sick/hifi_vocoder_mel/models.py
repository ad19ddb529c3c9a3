import torch
import torch.nn.functional as F
from torch import nn


class Vocoder(nn.Module):
    def __init__(self, n_mels=16, width=24, rates=(8, 4)):
        super().__init__()
        self.pre = nn.Conv1d(n_mels, width, 7, padding=3)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(width, width, 2 * r, stride=r, padding=r // 2) for r in rates
        )
        self.res = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in rates)
        self.post = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, mel):
        x = self.pre(mel)
        for up, res in zip(self.ups, self.res, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            x = x + res(F.leaky_relu(x, 0.1))
        return torch.tanh(self.post(F.leaky_relu(x, 0.1)))


class PeriodJudge(nn.Module):
    def __init__(self, period, width=12):
        super().__init__()
        self.period = period
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(1, width, (5, 1), (3, 1), (2, 0)),
                nn.Conv2d(width, width, (5, 1), (3, 1), (2, 0)),
            ]
        )
        self.post = nn.Conv2d(width, 1, (3, 1), padding=(1, 0))

    def forward(self, wav):
        b, c, t = wav.shape
        wav = wav[..., : t - t % self.period]
        x = wav.reshape(b, c, -1, self.period)
        feats = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), 0.1)
            feats.append(x)
        return self.post(x).flatten(1), feats
