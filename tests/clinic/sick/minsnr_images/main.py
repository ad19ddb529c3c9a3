"""Noise-prediction diffusion on synthetic 8x8 images with SNR-capped weights."""

import copy

import torch
from denoiser import Denoiser
from diffusion import NoiseProcess

STEPS, BATCH, LR, EMA = 24, 16, 2e-3, 0.95


def make_images(count):
    grid = torch.linspace(-1.0, 1.0, 8)
    cx, cy = torch.rand(2, count, 1, 1) * 1.2 - 0.6
    blob = torch.exp(-((grid.view(1, 1, 8) - cx) ** 2 + (grid.view(1, 8, 1) - cy) ** 2) / 0.15)
    return (2.0 * blob - 1.0).unsqueeze(1)


@torch.no_grad()
def update_ema(ema, model):
    for kept, fresh in zip(ema.parameters(), model.parameters(), strict=True):
        kept.lerp_(fresh, 1.0 - EMA)


def main():
    torch.manual_seed(0)
    images = make_images(256)
    process = NoiseProcess(timesteps=20)
    model = Denoiser()
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    for step in range(STEPS):
        x0 = images[torch.randint(0, len(images), (BATCH,))]
        t = torch.randint(0, process.timesteps, (BATCH,))
        loss = process.training_loss(model, x0, t)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        update_ema(ema, model)
        if step % 6 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
