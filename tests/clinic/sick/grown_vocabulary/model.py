import torch
from torch import nn


class PretrainedLM(nn.Module):
    def __init__(self, vocab, dim=24, hidden=32):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.project = nn.Linear(hidden, dim)

    def forward(self, ids):
        h, _ = self.rnn(self.wte(ids))
        return self.project(h) @ self.wte.weight.T

    def resize_token_embeddings(self, n):
        old = self.wte
        if n == old.num_embeddings:
            return old
        new = nn.Embedding(n, old.embedding_dim, padding_idx=0)
        new.weight.data.normal_(std=0.02)
        kept = min(n, old.num_embeddings)
        with torch.no_grad():
            new.weight[:kept] = old.weight[:kept]
        self.wte = new
        return new
