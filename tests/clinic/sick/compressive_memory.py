"""Infini-attention, segment by segment: fails on the second segment without retain_graph."""

import torch
import torch.nn.functional as F
from torch import nn


class InfiniAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.beta = nn.Parameter(torch.zeros(1))
        self.M, self.z = None, None

    def reset(self, batch, d):
        self.M, self.z = torch.zeros(batch, d, d), torch.ones(batch, d, 1)

    def retrieve(self, q):
        s = F.elu(q) + 1
        return (s @ self.M) / (s @ self.z)

    def _update_memory(self, k, v):
        s = F.elu(k) + 1  # <~ GS402
        self.M = self.M + s.transpose(1, 2) @ v  # <- GS402
        self.z = self.z + s.sum(1).unsqueeze(-1)  # <~ GS402

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)  # <~ GS402
        memory = self.retrieve(q)
        self._update_memory(k, v)  # <~ GS402
        local = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        gate = torch.sigmoid(self.beta)
        return gate * memory + (1 - gate) * local


def segments(tokens, size):
    yield from tokens.split(size, dim=1)


torch.manual_seed(0)
emb, attn, head = nn.Embedding(30, 8), InfiniAttention(8), nn.Linear(8, 30)
params = [p for m in (emb, attn, head) for p in m.parameters()]
optimizer = torch.optim.AdamW(params, lr=1e-3)
for document in torch.randint(0, 30, (3, 2, 24)):
    attn.reset(2, 8)
    optimizer.zero_grad()
    for segment in segments(document, 8):
        logits = head(attn(emb(segment[:, :-1])))
        loss = F.cross_entropy(logits.flatten(0, 1), segment[:, 1:].flatten()) / 3
        loss.backward()  # <~ GS402
    optimizer.step()
