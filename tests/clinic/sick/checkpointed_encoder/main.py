import argparse

import torch
import torch.nn.functional as F

from data import DialogueVectors
from model import ResponseSelector


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument(
        "--no-checkpoint",
        dest="checkpoint",
        action="store_false",
        help="keep all activations in memory",
    )
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


@torch.no_grad()
def hits_at_1(model, dataset, generator):
    model.eval()
    hits, total = 0, 0
    for ctx, resp in dataset.batches(32, generator):
        scores = model(ctx, resp)
        hits += (scores.argmax(1) == torch.arange(len(ctx))).sum().item()
        total += len(ctx)
    model.train()
    return hits / total


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    shuffler = torch.Generator().manual_seed(args.seed)
    train, valid = DialogueVectors(256, seed=1), DialogueVectors(64, seed=2)
    model = ResponseSelector(use_checkpoint=args.checkpoint)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        losses = []
        for ctx, resp in train.batches(args.batch_size, shuffler):
            scores = model(ctx, resp)
            loss = F.cross_entropy(scores, torch.arange(len(ctx)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 2 == 1:
            print(
                f"epoch {epoch + 1:2d}  loss {sum(losses) / len(losses):.4f}  "
                f"valid hits@1 {hits_at_1(model, valid, shuffler):.3f}"
            )


if __name__ == "__main__":
    main()
