"""The weights of an attention are computed under no_grad "to save memory"; queries and keys come
out of one layer with the values, so no parameter is without a gradient."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)

    def weights(self, q, k):
        with torch.no_grad():  # <- GS311
            scores = q @ k.transpose(-2, -1)
            return F.softmax(scores / q.size(-1) ** 0.5, dim=-1)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = self.weights(q, k) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Tagger(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.attention = Attention(width, heads=4)
        self.tags = nn.Linear(width, 5)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.tags(x + self.attention(x))


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    tokens = torch.randint(0, 20, (8, 10))
    loss = F.cross_entropy(model(tokens).flatten(0, 1), (tokens % 5).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
