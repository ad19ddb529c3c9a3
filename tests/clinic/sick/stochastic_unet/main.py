import math

import torch
import torch.nn.functional as F
from unet import SmallUNet


def blobs(n: int, size: int = 12):
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    cx, cy = torch.rand(2, n, 1, 1) - 0.5
    return torch.exp(-8 * ((xx - cx) ** 2 + (yy - cy) ** 2))[:, None] * 2 - 1


def diffuse(images):
    t = torch.rand(len(images))
    alpha = torch.cos(t * math.pi / 2)[:, None, None, None]
    sigma = torch.sin(t * math.pi / 2)[:, None, None, None]
    noise = torch.randn_like(images)
    return alpha * images + sigma * noise, t, noise


def validate(model, images) -> float:
    model.eval()
    with torch.no_grad():
        noisy, t, noise = diffuse(images)
        value = F.mse_loss(model(noisy, t), noise).item()
    model.train()
    return value


def main():
    torch.manual_seed(0)
    images, held_out = blobs(128), blobs(32)
    model = SmallUNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for step in range(20):
        noisy, t, noise = diffuse(images[torch.randint(0, 128, (16,))])
        loss = F.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 5 == 4:
            print(f"step {step + 1}: loss {loss.item():.4f}  val {validate(model, held_out):.4f}")


if __name__ == "__main__":
    main()
