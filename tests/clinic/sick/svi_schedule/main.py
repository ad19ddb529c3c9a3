import argparse

import torch

from infer import SVI, LinearModel, MeanFieldGuide
from optim import exponential_lr


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-data", type=int, default=256)
    parser.add_argument("--dim", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make_data(args):
    w = torch.randn(args.dim) * 1.5
    x = torch.randn(args.num_data, args.dim)
    y = x @ w + 0.5 * torch.randn(args.num_data)
    return x, y


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    x, y = make_data(args)
    guide = MeanFieldGuide(args.dim)
    optim = exponential_lr({"lr": args.lr}, args.gamma)
    svi = SVI(LinearModel(args.dim, 0.5), guide, optim, args.num_data)
    for epoch in range(args.num_epochs):
        total, batches = 0.0, 0
        for idx in torch.randperm(args.num_data).split(args.batch_size):
            total += svi.step(x[idx], y[idx])
            batches += 1
        print(f"epoch {epoch:2d} lr {optim.current_lr():.4f} -elbo {total / batches:.4f}")


if __name__ == "__main__":
    main()
