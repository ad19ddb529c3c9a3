import torch
import torch.nn.functional as F
from torch import nn


def strongest_periods(x, k):
    spectrum = torch.fft.rfft(x, dim=1).abs()
    strength = spectrum.mean(0).mean(-1)
    strength[0] = 0
    top = strength.topk(k).indices
    periods = (x.size(1) // top.clamp(min=1)).tolist()
    return periods, spectrum.mean(-1)[:, top]


class PeriodBlock(nn.Module):
    """Folds the series at its strongest periods and looks at it in two dimensions."""

    def __init__(self, d_model, k=2):
        super().__init__()
        self.k = k
        self.conv = nn.Sequential(
            nn.Conv2d(d_model, d_model, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(d_model, d_model, 3, padding=1),
        )

    def forward(self, x):
        b, t, d = x.shape
        periods, weight = strongest_periods(x.detach(), self.k)
        folded = []
        for period in periods:
            length = -(-t // period) * period
            padded = F.pad(x, (0, 0, 0, length - t))
            image = padded.view(b, length // period, period, d).permute(0, 3, 1, 2)
            folded.append(self.conv(image).permute(0, 2, 3, 1).reshape(b, length, d)[:, :t])
        weight = weight.softmax(dim=1)[:, None, None, :]
        return (torch.stack(folded, dim=-1) * weight).sum(-1) + x


class SensorMixer(nn.Module):
    """Lets the sensors correct one another before anything is forecast."""

    def __init__(self, n_sensors):
        super().__init__()
        self.mix = nn.Linear(n_sensors, n_sensors)
        nn.init.eye_(self.mix.weight)

    def forward(self, x):
        return torch.tanh(self.mix(x))
