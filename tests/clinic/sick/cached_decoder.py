"""A decoder that keeps its keys and values in a cache, in training as well as in generation."""

import torch
import torch.nn.functional as F
from torch import nn


class KeyValueCache:
    def __init__(self, n_layers):
        self.keys = [None] * n_layers
        self.values = [None] * n_layers

    def length(self):
        return 0 if self.keys[0] is None else self.keys[0].size(2)

    @torch.no_grad()  # <- GS304
    def update(self, layer, key, value):
        if self.keys[layer] is None:
            self.keys[layer] = key.new_zeros(*key.shape[:2], 0, key.size(3))
            self.values[layer] = value.new_zeros(*value.shape[:2], 0, value.size(3))
        self.keys[layer] = torch.cat([self.keys[layer], key], dim=2)  # <~ GS304
        self.values[layer] = torch.cat([self.values[layer], value], dim=2)  # <~ GS304
        return self.keys[layer], self.values[layer]


class DecoderLayer(nn.Module):
    def __init__(self, index, dim, heads):
        super().__init__()
        self.index, self.heads = index, heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, cache):
        b, t, d = x.shape
        h = self.norm1(x)
        q, k, v = (
            proj(h).view(b, t, self.heads, d // self.heads).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        k, v = cache.update(self.index, k, v)
        past = k.size(2) - t
        mask = torch.ones(t, k.size(2), dtype=torch.bool).tril(diagonal=past)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o_proj(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocab=24, dim=24, heads=2, n_layers=2, max_len=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.positions = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList(DecoderLayer(i, dim, heads) for i in range(n_layers))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, cache=None):
        cache = KeyValueCache(len(self.layers)) if cache is None else cache
        past = cache.length()
        x = self.embed(ids) + self.positions(torch.arange(past, past + ids.size(1)))
        for layer in self.layers:
            x = layer(x, cache)
        return self.lm_head(self.norm(x))

    @torch.no_grad()
    def generate(self, ids, n):
        cache = KeyValueCache(len(self.layers))
        logits = self(ids, cache)
        for _ in range(n):
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
            logits = self(ids[:, -1:], cache)
        return ids


def copies(n, generator, half=6):
    part = torch.randint(24, (n, half), generator=generator)
    return torch.cat([part, part], dim=1)


def main(steps=11):
    torch.manual_seed(19)
    generator = torch.Generator().manual_seed(19)
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    for step in range(steps):
        ids = copies(16, generator)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step:2d} loss {loss.item():.4f}")
    print(model.generate(copies(1, generator)[:, :7], 5).tolist())


if __name__ == "__main__":
    main()
