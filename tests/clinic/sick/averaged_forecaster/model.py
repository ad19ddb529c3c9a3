import torch
from torch import nn


class Forecaster(nn.Module):
    """Reads a window with a convolution and a GRU and writes the whole horizon at once."""

    def __init__(self, window, horizon, channels=16):
        super().__init__()
        self.conv = nn.Conv1d(1, channels, kernel_size=3, padding=1)
        self.rnn = nn.GRU(channels, channels, batch_first=True)
        self.out = nn.Linear(channels, horizon)
        self.skip = nn.Linear(window, horizon)

    def forward(self, x):
        h = torch.relu(self.conv(x.unsqueeze(1))).transpose(1, 2)
        _, state = self.rnn(h)
        return self.out(state[-1]) + self.skip(x)


def make_series(n=400):
    t = torch.arange(n, dtype=torch.float32)
    series = torch.sin(t / 7) + 0.4 * torch.sin(t / 2.3) + 0.05 * torch.randn(n)
    return (series - series.mean()) / series.std()


def windows(series, window, horizon):
    pieces = series.unfold(0, window + horizon, 1)
    return pieces[:, :window], pieces[:, window:]
