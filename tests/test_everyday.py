"""What an autoencoder with a codebook keeps from a gradient, where no mistake is found."""

from __future__ import annotations

from tests.looking import Session

CALLS = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)

def train(net, loss, steps=3):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()

def parts(**modules):
    return nn.ModuleDict(modules)
"""

MEANT = (
    CALLS
    + """
def straight(m):
    z = m.e(torch.randn(10, 6))
    q = m.codes(torch.cdist(z, m.codes.weight).argmin(1))
    s = z + (q - z).detach()
    r = z + (z.round() - z).detach()
    t = q.detach() + z - z.detach()
    pull = F.mse_loss(q, z.detach()) + F.mse_loss(s.detach(), z) + (s.detach() - z).pow(2).mean()
    return m.d(s + r + t).pow(2).mean() + pull
train(parts(e=nn.Linear(6, 4), codes=nn.Embedding(9, 4), d=nn.Linear(4, 6)), straight)

"""
)


def test_values_that_are_kept_from_a_gradient_are_meant(session: Session) -> None:
    assert session.warned(MEANT, "--steps", "all") == []
