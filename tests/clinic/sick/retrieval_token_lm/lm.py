import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class CausalLM(nn.Module):
    def __init__(self, vocab=60, dim=32, layers=2, heads=4, max_len=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(max_len, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def resize_token_embeddings(self, new_vocab):
        old_in, old_out = self.embed, self.lm_head
        self.embed = nn.Embedding(new_vocab, old_in.embedding_dim)  # <~ GS000
        self.lm_head = nn.Linear(old_out.in_features, new_vocab, bias=False)  # <~ GS000
        with torch.no_grad():
            self.embed.weight[: old_in.num_embeddings] = old_in.weight
            self.lm_head.weight[: old_out.out_features] = old_out.weight

    def forward(self, embeds):
        length = embeds.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        x = embeds + self.pos[:length]
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        return x, self.lm_head(x)
