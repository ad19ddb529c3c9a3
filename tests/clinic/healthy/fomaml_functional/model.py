import torch
import torch.nn as nn


class SineRegressor(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)


class SineTasks:
    """Tasks: sine waves of random amplitude and phase."""

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)

    def sample(self, n_support, n_query):
        amp = 0.5 + 2.0 * torch.rand(1, generator=self.gen)
        phase = 3.14 * torch.rand(1, generator=self.gen)
        x = 6 * torch.rand(n_support + n_query, 1, generator=self.gen) - 3
        y = amp * torch.sin(x + phase)
        return (x[:n_support], y[:n_support]), (x[n_support:], y[n_support:])
