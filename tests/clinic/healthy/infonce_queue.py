"""Momentum encoder, queue of negatives, no_grad and detach on purpose."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, encoder, dim=16, K=64, m=0.99, T=0.07):
        super().__init__()
        self.m, self.T = m, T
        self.encoder_q = encoder
        self.encoder_k = copy.deepcopy(encoder)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=False):
            k.data = k.data * self.m + q.data * (1 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        p = int(self.ptr)
        self.queue[:, p : p + len(keys)] = keys.T
        self.ptr[0] = (p + len(keys)) % self.queue.shape[1]

    def forward(self, a, b):
        q = F.normalize(self.encoder_q(a), dim=1)
        with torch.no_grad():
            self._update()
            k = F.normalize(self.encoder_k(b), dim=1)
        l_pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        self._enqueue(k)
        return torch.cat([l_pos, l_neg], 1) / self.T


torch.manual_seed(0)
moco = MoCo(nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 16)))
opt = torch.optim.SGD(moco.encoder_q.parameters(), lr=0.03, momentum=0.9)
for _ in range(5):
    x = torch.randn(16, 24)
    logits = moco(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    loss = F.cross_entropy(logits, torch.zeros(16, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
