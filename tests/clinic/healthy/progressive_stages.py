"""A decoder that grows: new resolutions are faded in and join the optimizer later."""

import torch
import torch.nn.functional as F
from torch import nn


class UpBlock(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv1d(n_in, n_out, 3, padding=1)

    def forward(self, x):
        return F.leaky_relu(self.conv(F.interpolate(x, scale_factor=2)), 0.2)


class GrowingAutoencoder(nn.Module):
    def __init__(self, length=32, channels=(16, 12, 8)):
        super().__init__()
        self.channels = channels
        self.encoder = nn.Sequential(nn.Linear(length, 32), nn.LeakyReLU(0.2), nn.Linear(32, 8))
        self.start = nn.Linear(8, channels[0] * 8)
        self.blocks = nn.ModuleList()
        self.to_signal = nn.ModuleList([nn.Conv1d(channels[0], 1, 1)])
        self.alpha = 1.0

    def grow(self):
        stage = len(self.blocks)
        block = UpBlock(self.channels[stage], self.channels[stage + 1])
        output = nn.Conv1d(self.channels[stage + 1], 1, 1)
        self.blocks.append(block)
        self.to_signal.append(output)
        self.alpha = 0.0
        return [*block.parameters(), *output.parameters()]

    def forward(self, signal):
        code = self.encoder(signal)
        x = F.leaky_relu(self.start(code), 0.2).view(len(signal), self.channels[0], 8)
        if not self.blocks:
            return self.to_signal[0](x).squeeze(1)
        for block in self.blocks[:-1]:
            x = block(x)
        new = self.to_signal[-1](self.blocks[-1](x))
        if self.alpha < 1.0:
            old = F.interpolate(self.to_signal[-2](x), scale_factor=2)
            new = (1 - self.alpha) * old + self.alpha * new
        return new.squeeze(1)


def batch(n=48, length=32):
    grid = torch.linspace(0, 1, length)
    phase, freq = 6.28 * torch.rand(n, 1), 1 + 2 * torch.rand(n, 1)
    return torch.sin(6.28 * freq * grid + phase)


class Schedule:
    """Linear warm-up from zero, counted from the moment when a group was added."""

    def __init__(self, optimizer, warmup):
        self.optimizer, self.warmup = optimizer, warmup
        for group in optimizer.param_groups:
            self.register(group)

    def register(self, group):
        group["peak"], group["age"] = group["lr"], 0
        group["lr"] = 0.0

    def step(self):
        for group in self.optimizer.param_groups:
            group["age"] += 1
            group["lr"] = group["peak"] * min(1.0, group["age"] / self.warmup)


def train_stage(model, optimizer, schedule, name, steps, fade=6):
    losses = []
    for step in range(steps):
        signal = batch()
        if model.alpha < 1.0:
            model.alpha = min(1.0, step / fade)
        output = model(signal)
        target = F.adaptive_avg_pool1d(signal, output.shape[1])
        loss = F.mse_loss(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    first, last = torch.stack(losses[:3]).mean(), torch.stack(losses[-3:]).mean()
    print(f"{name}: {first.item():.3f} -> {last.item():.3f}, output length {output.shape[1]}")


def main():
    torch.manual_seed(0)
    model = GrowingAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.5, 0.99))
    schedule = Schedule(optimizer, warmup=3)
    train_stage(model, optimizer, schedule, "8 samples", 12)
    for name in ("16 samples", "32 samples"):
        optimizer.add_param_group({"params": model.grow(), "lr": 1.5e-2})
        schedule.register(optimizer.param_groups[-1])
        train_stage(model, optimizer, schedule, name, 14)


if __name__ == "__main__":
    main()
