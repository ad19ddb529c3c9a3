"""A 12-layer character GPT on a chapter of Alice in Wonderland.

A graph of several hundred nodes, made of twelve copies of one block. The token embedding is also
the output head, so that leaf gets two gradients, one from each end of the model.

Try:
    gradscope trace examples/char_gpt/train.py
    gradscope backward examples/char_gpt/train.py
    gradscope backward examples/char_gpt/train.py --call 5 -- --n-layer 2
"""

import argparse
import math
from pathlib import Path

import torch
from model import GPT, GPTConfig


class CharDataset:
    """A text as character numbers, cut at random into inputs and their next characters."""

    def __init__(self, text, block_size):
        self.chars = sorted(set(text))
        self.block_size = block_size
        self.data = torch.tensor([self.chars.index(ch) for ch in text])

    def batch(self, size):
        starts = torch.randint(len(self.data) - self.block_size, (size, 1))
        window = self.data[starts + torch.arange(self.block_size + 1)]
        return window[:, :-1], window[:, 1:]

    def decode(self, tokens):
        return "".join(self.chars[token] for token in tokens)


def make_optimizer(model, lr, weight_decay):
    """AdamW that decays matrices and embeddings but not biases and norms."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


def lr_scale(step, steps, warmup=5):
    """Linear warm-up, then half a cosine down to a tenth."""
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def parse_args():
    parser = argparse.ArgumentParser(description="Train a character-level GPT.")
    parser.add_argument("--data", type=Path, default=Path(__file__).with_name("input.txt"))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--block-size", type=int, default=64)
    parser.add_argument("--n-layer", type=int, default=12)
    parser.add_argument("--n-head", type=int, default=6)
    parser.add_argument("--n-embd", type=int, default=96)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--grad-clip", type=float, default=1.0)
    parser.add_argument("--sample", type=int, default=120, help="characters to write at the end")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)

    dataset = CharDataset(args.data.read_text(encoding="utf-8"), args.block_size)
    config = GPTConfig(
        vocab_size=len(dataset.chars),
        block_size=args.block_size,
        n_layer=args.n_layer,
        n_head=args.n_head,
        n_embd=args.n_embd,
        dropout=args.dropout,
    )
    model = GPT(config).to(args.device)
    optimizer = make_optimizer(model, args.lr, args.weight_decay)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: lr_scale(s, args.steps))
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(dataset.data)} characters, {config.vocab_size} distinct; {count} parameters")

    model.train()
    for step in range(1, args.steps + 1):
        inputs, targets = (t.to(args.device) for t in dataset.batch(args.batch_size))
        _, loss = model(inputs, targets)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        scheduler.step()
        if step == 1 or step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  gradient norm {norm.item():.3f}")

    if args.sample:
        model.eval()
        prompt = torch.tensor([[dataset.chars.index("A")]], device=args.device)
        print("---")
        print(dataset.decode(model.generate(prompt, args.sample)[0].tolist()))


if __name__ == "__main__":
    main()
