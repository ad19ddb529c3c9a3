"""Depth and ego-motion from pairs of one-dimensional views, with photometric loss."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 32


class DispNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(16, 16, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(16, 1, 5, padding=2),
        )

    def forward(self, x):
        return 0.3 * torch.sigmoid(self.net(x)) + 0.01


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(), nn.Linear(2 * WIDTH, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, a, b):
        return self.net(torch.cat([a, b], dim=1))


def warp(image, shift):
    base = torch.linspace(-1, 1, WIDTH).expand(len(image), WIDTH)
    grid = torch.stack([base + shift, torch.zeros_like(base)], dim=-1).unsqueeze(1)
    return F.grid_sample(
        image.unsqueeze(2), grid, align_corners=True, padding_mode="border"
    ).squeeze(2)


def views(n, gen):
    phase = 6.28 * torch.rand(n, 1, generator=gen)
    motion = 0.6 * torch.rand(n, 1, generator=gen) - 0.3
    x = torch.linspace(-1, 1, WIDTH).expand(n, WIDTH)
    first = torch.sin(4 * x + phase) + 0.5 * torch.sin(9 * x - phase)
    second = torch.sin(4 * (x - motion) + phase) + 0.5 * torch.sin(9 * (x - motion) - phase)
    return first.unsqueeze(1), second.unsqueeze(1)


def make_scheduler(optimizer, args):
    if args.scheduler == "step":
        return torch.optim.lr_scheduler.StepLR(optimizer, args.decay_every, gamma=0.5)
    return None


def train(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    disp_net, pose_net = DispNet(), PoseNet()
    params = list(disp_net.parameters()) + list(pose_net.parameters())
    optimizer = torch.optim.Adam(params, lr=args.lr)
    scheduler = make_scheduler(optimizer, args)
    running = 0.0
    for it in range(1, args.iters + 1):
        first, second = views(args.batch_size, gen)
        disparity = disp_net(first).squeeze(1)
        restored = warp(second, disparity * pose_net(first, second) * 5)
        smooth = (disparity[:, 1:] - disparity[:, :-1]).abs().mean()
        loss = F.l1_loss(restored, first) + args.smooth * smooth
        optimizer.zero_grad()
        loss.backward()
        if scheduler is not None:
            scheduler.step()
        else:  # <~ GS000
            optimizer.step()  # <- GS000
        running += loss.item()
        if it % 4 == 0:
            print(f"iter {it}: loss {running / 4:.4f} lr {optimizer.param_groups[0]['lr']:.1e}")
            running = 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--smooth", type=float, default=0.1)
    parser.add_argument("--scheduler", default="step", choices=["step", "none"])
    parser.add_argument("--decay-every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args())
