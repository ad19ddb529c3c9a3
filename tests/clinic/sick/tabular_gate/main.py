import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from model import TabularNet


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--features", type=int, default=10)
    p.add_argument("--samples", type=int, default=1024)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--seed", type=int, default=7)
    return p.parse_args()


def make_data(n, d, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g)
    y = torch.where(x[:, 0] > 0, x[:, 1] * 1.5, -x[:, 2]) + 0.5 * x[:, 3]
    return x, y + 0.05 * torch.randn(n, generator=g)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    return nn.functional.mse_loss(model(x), y).item()


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    x, y = make_data(args.samples, args.features, args.seed)
    xv, yv = make_data(512, args.features, args.seed + 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
    model = TabularNet(args.features)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
        print(f"epoch {epoch:2d}  train {total / len(x):.4f}  val {evaluate(model, xv, yv):.4f}")


if __name__ == "__main__":
    main()
