import math

import torch
from torch.utils.data import DataLoader, TensorDataset

ANGLES = ("yaw", "pitch", "roll")


def render_clips(n, frames, size, gen):
    angles = (torch.rand(n, 3, generator=gen) - 0.5) * math.pi / 2
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    clips = torch.zeros(n, 1, frames, size, size)
    for t in range(frames):
        yaw, pitch, roll = (angles[:, k].view(-1, 1, 1) for k in range(3))
        shift = 0.1 * (t - frames / 2)
        x = xx * torch.cos(roll) + yy * torch.sin(roll) - 0.7 * torch.sin(yaw) - shift
        y = -xx * torch.sin(roll) + yy * torch.cos(roll) - 0.7 * torch.sin(pitch)
        clips[:, 0, t] = torch.exp(-(4 * x**2 + 12 * y**2))
    clips += 0.02 * torch.randn(clips.shape, generator=gen)
    return clips, angles


def make_loader(cfg, seed):
    gen = torch.Generator().manual_seed(seed)
    clips, angles = render_clips(cfg["num_clips"], cfg["frames"], cfg["size"], gen)
    return DataLoader(
        TensorDataset(clips, angles),
        batch_size=cfg["batch_size"],
        shuffle=True,
        drop_last=True,
        generator=gen,
    )
