import argparse

import torch
import torch.nn.functional as F

from model import SpectraNet, make_spectra, set_bn_momentum
from sam import SAM


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--rho", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    x, y = make_spectra(512, seed=1)
    xv, yv = make_spectra(512, label_noise=0.0, seed=2)
    model = SpectraNet(n_classes=5)
    optimizer = SAM(
        model.parameters(),
        torch.optim.SGD,
        rho=args.rho,
        lr=args.lr,
        momentum=0.9,
        weight_decay=1e-4,
    )

    for epoch in range(1, args.epochs + 1):
        order = torch.randperm(len(x))
        losses = []
        for i in range(0, len(x), args.batch_size):
            xb, yb = x[order[i : i + args.batch_size]], y[order[i : i + args.batch_size]]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.ascend()

            optimizer.zero_grad()
            set_bn_momentum(model, frozen=True)
            F.cross_entropy(model(xb), yb).backward()
            set_bn_momentum(model, frozen=False)
            optimizer.step()
            losses.append(loss.item())
        print(
            f"epoch {epoch}  loss {sum(losses) / len(losses):.4f}  "
            f"valid acc {accuracy(model, xv, yv):.3f}"
        )


if __name__ == "__main__":
    main()
