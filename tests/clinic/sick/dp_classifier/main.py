"""Differentially private training of a scan classifier."""

import argparse

import torch
import torch.nn.functional as F

from model import ScanNet
from privacy import DPOptimizer, ModuleValidator


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=2)
    p.add_argument("--n", type=int, default=72)
    p.add_argument("--batch_size", type=int, default=24)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.25)
    p.add_argument("--noise_multiplier", type=float, default=0.4)
    p.add_argument("--max_grad_norm", type=float, default=1.0)
    return p.parse_args()


def make_scans(n, gen):
    """Three kinds of stripes in noise."""
    y = torch.randint(0, 3, (n,), generator=gen)
    r = torch.linspace(0, 12.56, 16)
    yy, xx = torch.meshgrid(r, r, indexing="ij")
    waves = torch.stack([xx.sin(), yy.sin(), (xx + yy).sin()])
    return (waves[y] + 0.6 * torch.randn(n, 16, 16, generator=gen)).unsqueeze(1), y


def train_epoch(model, optimizer, x, y, batch_size, gen):
    losses = []
    for idx in torch.randperm(len(y), generator=gen).split(batch_size):
        for i in idx.tolist():
            loss = F.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
            loss.backward()
            optimizer.accumulate_sample()
            losses.append(loss.item())
        optimizer.step()
    return sum(losses) / len(losses)


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    x, y = make_scans(args.n, gen)
    model = ScanNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.5)  # <~ GS307
    if ModuleValidator.validate(model):
        model = ModuleValidator.fix(model)  # <- GS307
    optimizer = DPOptimizer(optimizer, args.noise_multiplier, args.max_grad_norm, gen)
    for epoch in range(args.epochs):
        loss = train_epoch(model, optimizer, x, y, args.batch_size, gen)
        print(f"epoch {epoch}  loss {loss:.4f}  acc {accuracy(model, x, y):.3f}")
    return model


if __name__ == "__main__":
    main()
