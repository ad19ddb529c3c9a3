import argparse

import torch
import torch.nn.functional as F
from lora import count, inject
from model import Classifier, Encoder


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=50)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=11)
    return parser.parse_args([])


def batches(args, generator):
    for _ in range(args.steps):
        ids = torch.randint(args.vocab, (8, args.length), generator=generator)
        yield ids, (ids[:, 0] > ids[:, -1]).long()


def build(args):
    encoder = Encoder(args.vocab, args.dim, heads=4, layers=args.layers, max_len=args.length)
    model = inject(Classifier(encoder, args.dim, 2), rank=args.rank)
    for param in model.score.parameters():
        param.requires_grad = True
    model.encoder.gradient_checkpointing = True
    return model


def main():
    args = parse()
    torch.manual_seed(0)
    model = build(args)
    print(count(model))
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=args.steps)
    model.train()
    for step, (ids, labels) in enumerate(batches(args, torch.Generator().manual_seed(1))):
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        scheduler.step()
        if step % 5 == 0:
            print(f"step {step:2d} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
