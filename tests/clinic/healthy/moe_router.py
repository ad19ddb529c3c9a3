"""Sparse mixture of experts: tokens go to their best experts, some experts rest in a step."""

import torch
import torch.nn.functional as F
from torch import nn


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class SparseLayer(nn.Module):
    def __init__(self, dim=16, hidden=24, experts=6, top_k=2):
        super().__init__()
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(experts))
        self.router = nn.Linear(dim, experts, bias=False)
        self.top_k = top_k
        self.register_buffer("load", torch.zeros(experts))

    def forward(self, x):
        scores = self.router(x)
        if self.training:
            scores = scores + 0.3 * torch.randn_like(scores)
        top, chosen = scores.topk(self.top_k, dim=-1)
        gates = top.softmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, slot = torch.nonzero(chosen == i, as_tuple=True)
            if len(token) == 0:
                continue
            out = out.index_add(0, token, gates[token, slot].unsqueeze(1) * expert(x[token]))
        usage = F.one_hot(chosen, len(self.experts)).float().sum(1).mean(0)
        self.load.lerp_(usage.detach(), 0.1)
        balance = len(self.experts) * (usage.detach() * scores.softmax(-1).mean(0)).sum()
        return x + out, balance


class SparseNet(nn.Module):
    def __init__(self, inputs=8, dim=16, classes=4):
        super().__init__()
        self.enter, self.leave = nn.Linear(inputs, dim), nn.Linear(dim, classes)
        self.layers = nn.ModuleList(SparseLayer(dim) for _ in range(2))

    def forward(self, x):
        x, penalty = torch.relu(self.enter(x)), 0.0
        for layer in self.layers:
            x, balance = layer(x)
            penalty = penalty + balance
        return self.leave(x), penalty


def main(steps=30):
    torch.manual_seed(24)
    centers = torch.randn(4, 8)
    model = SparseNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        y = torch.randint(0, 4, (6,))
        x = centers[y] + 0.4 * torch.randn(6, 8)
        logits, penalty = model(x)
        loss = F.cross_entropy(logits, y) + 0.01 * penalty
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            resting = sum(p.grad is None for p in model.parameters())
            print(f"step {step + 1} loss {loss.item():.4f} parameters at rest {resting}")


if __name__ == "__main__":
    main()
