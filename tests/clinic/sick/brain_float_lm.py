"""Further training of a small language model with a low learning rate and little memory."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Recipe:
    vocab: int = 40
    dim: int = 32
    layers: int = 2
    heads: int = 4
    length: int = 16
    batch: int = 4
    steps: int = 16
    lr: float = 1e-5  # <~ GS313
    weight_decay: float = 0.0
    dtype: torch.dtype = torch.bfloat16
    seed: int = 3


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).unbind(2)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.positions = nn.Embedding(cfg.length, cfg.dim)
        self.layers = nn.ModuleList(Layer(cfg.dim, cfg.heads) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
        self.output = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


class Recipes:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.model = LanguageModel(cfg).to(cfg.dtype)  # <- GS313
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), weight_decay=cfg.weight_decay
        )

    def batch(self):
        start = torch.randint(self.cfg.vocab, (self.cfg.batch, 1))
        stride = torch.randint(1, 4, (self.cfg.batch, 1))
        return (start + stride * torch.arange(self.cfg.length + 1)).remainder(self.cfg.vocab)

    def train(self):
        for step in range(self.cfg.steps):
            ids = self.batch()
            logits = self.model(ids[:, :-1]).float()
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            if step % 8 == 0:
                print(f"step {step:2d} loss {loss.item():.4f} grad_norm {norm.item():.3f}")


if __name__ == "__main__":
    Recipes(Recipe()).train()
