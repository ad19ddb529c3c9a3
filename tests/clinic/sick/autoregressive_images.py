import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TrainingArguments:
    bf16 = True
    learning_rate = 1e-4
    weight_decay = 0.0
    warmup_steps = 2
    max_steps = 40
    batch_size = 8
    seed = 42


class GatedMixer(nn.Module):
    """A causal gated convolution over image tokens."""

    def __init__(self, dim, kernel=4):
        super().__init__()
        self.kernel = kernel
        self.norm = nn.LayerNorm(dim)
        self.conv = nn.Conv1d(dim, dim, kernel, groups=dim)
        self.proj = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.norm(x).transpose(1, 2)
        h = self.conv(F.pad(h, (self.kernel - 1, 0))).transpose(1, 2)
        value, gate = self.proj(F.silu(h)).chunk(2, -1)
        return x + self.out(value * torch.sigmoid(gate))


class ImageTokenModel(nn.Module):
    def __init__(self, codes=16, classes=4, dim=16, depth=2):
        super().__init__()
        self.class_embed = nn.Embedding(classes, dim)
        self.token_embed = nn.Embedding(codes, dim)
        self.blocks = nn.Sequential(*[GatedMixer(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, codes)

    def forward(self, tokens, label):
        x = torch.cat([self.class_embed(label)[:, None], self.token_embed(tokens[:, :-1])], 1)
        return self.head(self.blocks(x))


class Trainer:
    def __init__(self, model, args):
        self.args = args
        dtype = torch.bfloat16 if args.bf16 else torch.float32
        self.model = model.to(dtype=dtype)  # <- GS313
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=args.learning_rate, weight_decay=args.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.lr_factor)

    def lr_factor(self, step):
        if step < self.args.warmup_steps:
            return (step + 1) / (self.args.warmup_steps + 1)
        done = (step - self.args.warmup_steps) / (self.args.max_steps - self.args.warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * done))

    def compute_loss(self, tokens, label):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.args.bf16):
            logits = self.model(tokens, label)
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())

    def train(self, loader):
        for step, (tokens, label) in enumerate(loader):
            loss = self.compute_loss(tokens, label)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            if step % 8 == 0:
                print(f"step {step} loss {loss.item():.4f}")


def token_batches(args):
    start = torch.arange(4) * 4
    for _ in range(args.max_steps):
        label = torch.randint(0, 4, (args.batch_size,))
        steps = torch.randint(0, 2, (args.batch_size, 12)).cumsum(1)
        yield (start[label][:, None] + steps) % 16, label


if __name__ == "__main__":
    args = TrainingArguments()
    torch.manual_seed(args.seed)
    Trainer(ImageTokenModel(), args).train(token_batches(args))
