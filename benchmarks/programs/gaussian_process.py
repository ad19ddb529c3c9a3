"""A Gaussian process learns its length scale, its amplitude and the noise from the likelihood."""

import argparse
import math

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--points", type=int, default=200)
arguments = parser.parse_args()


class Process(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_length = nn.Parameter(torch.tensor(0.0))
        self.log_amplitude = nn.Parameter(torch.tensor(0.0))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))
        self.mean = nn.Parameter(torch.tensor(0.0))

    def covariance(self, one, other):
        distances = (one[:, None] - other[None, :]) / self.log_length.exp()
        return self.log_amplitude.exp() * torch.exp(-0.5 * distances.square())

    def negative_log_likelihood(self, x, y):
        noise = self.log_noise.exp() + 1e-4
        factor = torch.linalg.cholesky(self.covariance(x, x) + noise * torch.eye(len(x)))
        centred = (y - self.mean)[:, None]
        solved = torch.cholesky_solve(centred, factor)
        fit = 0.5 * (centred * solved).sum()
        volume = factor.diagonal().log().sum()
        return (fit + volume + 0.5 * len(x) * math.log(2 * math.pi)) / len(x)


torch.manual_seed(0)
x = torch.linspace(0, 6, arguments.points)
y = torch.sin(2 * x) + 0.2 * torch.randn(arguments.points)
process = Process()
optimizer = torch.optim.Adam(process.parameters(), lr=0.05)
for step in range(1, arguments.steps + 1):
    loss = process.negative_log_likelihood(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}  {loss.item():.4f}  noise {process.log_noise.exp().item():.4f}")
