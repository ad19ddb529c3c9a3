"""MoCo: momentum key encoder, a queue of keys in a buffer, deep copies as checkpoints."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class MoCo(nn.Module):
    def __init__(self, make, dim=8, size=32, m=0.99, T=0.2):
        super().__init__()
        self.m, self.T, self.size = m, T, size
        self.encoder_q, self.encoder_k = make(), make()
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=False):
            k.data.copy_(q.data)
            k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=False):
            k.data = k.data * self.m + q.data * (1.0 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        at = int(self.pointer)
        self.queue[:, at : at + len(keys)] = keys.T
        self.pointer[0] = (at + len(keys)) % self.size

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self.momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        positive = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        logits = torch.cat([positive, negative], dim=1) / self.T
        self.enqueue(k)
        return logits, torch.zeros(len(logits), dtype=torch.long)


torch.manual_seed(0)
model = MoCo(lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8)))
optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
snapshots = []
for epoch in range(2):
    for _ in range(3):
        x = torch.randn(8, 6)
        output, target = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
        loss = F.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    snapshots.append(copy.deepcopy(model.state_dict()))
    print(epoch, loss.item(), len(snapshots))
