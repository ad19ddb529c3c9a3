"""LoRA on a frozen transformer whose blocks are recomputed in the backward pass."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCAB, WIDTH, LENGTH = 24, 32, 12


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale, self.merged = alpha / rank, False

    @torch.no_grad()
    def merge(self, on):
        if on != self.merged:
            delta = self.up @ self.down * self.scale
            self.base.weight += delta if on else -delta
            self.merged = on

    def forward(self, x):
        y = self.base(x)
        if self.merged:
            return y
        return y + F.linear(F.linear(x, self.down), self.up) * self.scale


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.value, self.proj = nn.Linear(width, width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.heads = heads

    def forward(self, x):
        b, t, w = x.shape
        h = self.norm1(x)
        q, k, v = (
            f(h).view(b, t, self.heads, -1).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.tokens.weight, std=0.2)
        self.recompute = False

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            if self.recompute and self.training:
                x = checkpoint(block, x, use_reentrant=True)
            else:
                x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def enable_input_grads(model):
    return model.tokens.register_forward_hook(lambda _m, _i, out: out.requires_grad_(True))


def add_lora(model):
    model.requires_grad_(False)
    for block in model.blocks:
        block.query = LoRALinear(block.query)
        block.value = LoRALinear(block.value)
    return [m for m in model.modules() if isinstance(m, LoRALinear)]


def counting_batch(stride, n=32):
    start = torch.randint(0, VOCAB, (n, 1))
    ids = (start + stride * torch.arange(LENGTH + 1)) % VOCAB
    return ids[:, :-1], ids[:, 1:]


def run_steps(model, optimizer, stride, steps):
    losses = []
    for _ in range(steps):
        x, y = counting_batch(stride)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.manual_seed(0)
    model = LanguageModel()
    losses = run_steps(model, torch.optim.AdamW(model.parameters(), lr=5e-3), 1, 15)
    print(f"pretraining {losses[0]:.2f} -> {losses[-1]:.2f}")

    adapters = add_lora(model)
    handle = enable_input_grads(model)
    model.recompute = True
    groups = [
        {"params": [a.down for a in adapters], "lr": 5e-3},
        {"params": [a.up for a in adapters], "lr": 4e-2},
    ]
    losses = run_steps(model, torch.optim.AdamW(groups, weight_decay=0.0), 3, 20)
    print(f"adapting {losses[0]:.2f} -> {losses[-1]:.2f}")
    handle.remove()

    model.eval()
    x, y = counting_batch(3)
    for merged in (False, True):
        for adapter in adapters:
            adapter.merge(merged)
        with torch.no_grad():
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        print(f"merged {merged}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
