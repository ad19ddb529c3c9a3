"""Healed. The biased variance of one element is 0."""

import torch
import torch.nn.functional as F


class Probe(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = torch.nn.Linear(d, 1)

    def forward(self, h):
        return self.lin(h).squeeze(-1).sigmoid()


LOSSES = {}


def register(name):
    def wrap(fn):
        LOSSES[name] = fn
        return fn

    return wrap


@register("ccs")
def ccs(p0, p1):
    consistency = p0.sub(1 - p1).square()
    confidence = torch.min(p0, p1).square()
    return consistency.mean() + confidence.mean()


@register("prompt_var")
def prompt_var(p0, p1):
    return p0.var(dim=1, correction=0).mean() + p1.var(dim=1, correction=0).mean()


def run(names=("ccs", "prompt_var"), variants=1, dim=20, steps=3):
    torch.manual_seed(1)
    probe = Probe(dim)
    opt = torch.optim.AdamW(probe.parameters(), lr=1e-2)
    x0 = F.layer_norm(torch.randn(32, variants, dim), (dim,))
    x1 = F.layer_norm(torch.randn(32, variants, dim), (dim,))
    for _ in range(steps):
        opt.zero_grad()
        p0, p1 = probe(x0), probe(x1)
        loss = sum(LOSSES[n](p0, p1) for n in names)
        loss.backward()
        opt.step()
    return probe


run()
