"""Train a small two-stage super-resolution network on synthetic textures."""

import argparse

import torch
import torch.nn.functional as F

from model import SRNet


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--patch", type=int, default=32)
    p.add_argument("--batch_size", type=int, default=4)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--stage1_weight", type=float, default=0.5)
    return p.parse_args()


def make_pair(batch_size, patch, gen):
    r = torch.linspace(0, 6.28, patch)
    yy, xx = torch.meshgrid(r, r, indexing="ij")
    freq = 0.5 + 2.0 * torch.rand(batch_size, 3, 2, 1, 1, generator=gen)
    phase = 6.28 * torch.rand(batch_size, 3, 1, 1, generator=gen)
    hr = 0.5 + 0.5 * torch.sin(freq[:, :, 0] * xx + freq[:, :, 1] * yy + phase)
    return F.avg_pool2d(hr, 2), hr


def psnr(pred, target):
    return -10 * torch.log10(F.mse_loss(pred, target))


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    model = SRNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        lr_img, hr_img = make_pair(args.batch_size, args.patch, gen)
        stage1, stage2 = model(lr_img)
        loss = args.stage1_weight * F.l1_loss(stage1, hr_img) + F.l1_loss(stage2, hr_img)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            with torch.no_grad():
                print(
                    f"[{step}/{args.steps}] loss {loss.item():.4f} "
                    f"psnr {psnr(stage2, hr_img).item():.2f}"
                )


if __name__ == "__main__":
    main()
