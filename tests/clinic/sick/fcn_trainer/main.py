import argparse

import torch
from torch.utils.data import DataLoader

from data import scenes
from models import FCN
from trainer import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--max-iter", type=int, default=36)
    parser.add_argument("--interval-validate", type=int, default=9)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1337)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_loader = DataLoader(
        scenes(96, args.size, args.seed), batch_size=args.batch_size, shuffle=True
    )
    val_loader = DataLoader(scenes(16, args.size, args.seed + 1), batch_size=8)
    model = FCN(n_class=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    trainer = Trainer(
        model, optimizer, train_loader, val_loader, args.max_iter, args.interval_validate
    )
    trainer.train()


if __name__ == "__main__":
    main()
