"""Fit a neural force field on energies and forces of small clusters."""

import argparse

import torch
import torch.nn.functional as F

from data import make_loaders
from model import PairEnergyNet, energy_and_forces


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--n_train", type=int, default=64)
    p.add_argument("--n_val", type=int, default=48)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--force_weight", type=float, default=5.0)
    return p.parse_args()


class Fitter:
    def __init__(self, model, args):
        self.model, self.force_weight = model, args.force_weight
        self.shift = torch.nn.Parameter(torch.zeros(()))
        self.optimizer = torch.optim.Adam([*model.parameters(), self.shift], lr=args.lr)
        self.history = {"train": [], "val": []}

    def batch_loss(self, pos, energy, forces):
        e, f = energy_and_forces(self.model, pos)
        return F.mse_loss(e + self.shift, energy) / pos.shape[1] + self.force_weight * F.mse_loss(
            f, forces
        )

    def run_epoch(self, loader, split):
        training = split == "train"
        self.model.train(training)
        total = 0.0
        for pos, energy, forces in loader:
            loss = self.batch_loss(pos, energy, forces)
            if training:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss  # <- GS502
        mean = total / len(loader)
        self.history[split].append(mean)  # <~ GS502
        return mean


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    train_loader, val_loader = make_loaders(args.n_train, args.n_val, args.batch_size, gen)
    fitter = Fitter(PairEnergyNet(), args)
    for epoch in range(args.epochs):
        train_loss = fitter.run_epoch(train_loader, "train")
        val_loss = fitter.run_epoch(val_loader, "val")
        print(f"epoch {epoch:2d}  train {train_loss:.4f}  val {val_loss:.4f}")
    return fitter


if __name__ == "__main__":
    main()
