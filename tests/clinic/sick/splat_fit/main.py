"""Fit a small picture with Gaussian splats and adaptive density control."""

import torch
import torch.nn.functional as F

from splat import make_params, pixel_grid, rasterize
from strategy import DensifyStrategy

CONFIG = {"seed": 7, "size": 32, "init_points": 24, "steps": 50, "lr": 2e-2, "log_every": 10}


def make_target(pixels):
    x, y = pixels[:, 0], pixels[:, 1]
    r = (6.0 * x).sin() * (5.0 * y).cos()
    g = ((x - 0.3) ** 2 + (y + 0.2) ** 2 < 0.2).float()
    b = (4.0 * (x + y)).sin().abs()
    return torch.stack([0.5 + 0.4 * r, 0.15 + 0.7 * g, b], dim=-1)


def make_optimizer(params, lr):
    return torch.optim.Adam(params.values(), lr=lr)


def main():
    cfg = CONFIG
    gen = torch.Generator().manual_seed(cfg["seed"])
    pixels = pixel_grid(cfg["size"])
    target = make_target(pixels)
    params = make_params(cfg["init_points"], gen)
    optimizer = make_optimizer(params, cfg["lr"])
    strategy = DensifyStrategy()

    for step in range(1, cfg["steps"] + 1):
        image, info = rasterize(params, pixels)  # <- GS306
        loss = F.l1_loss(image, target) + 0.2 * F.mse_loss(image, target)  # <~ GS306
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        strategy.observe(info)
        if strategy.grow(params, step, gen):
            optimizer = make_optimizer(params, cfg["lr"])
        if step % cfg["log_every"] == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  gaussians {params['means'].shape[0]}")


if __name__ == "__main__":
    main()
