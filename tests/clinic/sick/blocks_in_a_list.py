"""Blocks of several layers in a plain list: one mistake, however many parameters it leaves out."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(2, channels)  # <- GS307
        self.first = nn.Conv1d(channels, channels, 3, padding=1)
        self.second = nn.Conv1d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.second(F.relu(self.first(self.norm(x))))


class Denoiser(nn.Module):
    def __init__(self, channels=4, depth=9):
        super().__init__()
        self.lift = nn.Conv1d(1, channels, 1)
        self.blocks = [Residual(channels) for _ in range(depth)]  # <~ GS307
        self.drop = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        x = self.lift(x)
        for block in self.blocks:
            x = block(x)
        return self.drop(x)


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    clean = torch.randn(8, 1, 12).cumsum(-1)
    loss = F.mse_loss(model(clean + 0.1 * torch.randn_like(clean)), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
