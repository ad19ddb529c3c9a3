"""Mistakes that are made every day and that nothing raises for, each as a small program: it is told
at the line that is marked, and nothing else is; where no line is marked, nothing is told."""

from __future__ import annotations

import pytest

from tests.looking import Session, marked

HEAD = """
import contextlib, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)

def net(first=4, last=3):
    return nn.Sequential(nn.Linear(first, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, last))

def batch():
    return torch.randn(8, 4), torch.randint(3, (8,))

def learn(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

BESIDE = """
a, b = net(4, 8), net(8, 3)
{before}
optimizer = torch.optim.Adam({held}.parameters()){mark}
for _ in range(4):
    x, y = batch()
    learn(optimizer, F.cross_entropy(b(a(x)), y))
    {after}
"""


def beside(held: str, mark: str = "", before: str = "pass", after: str = "pass") -> str:
    """Two modules, one made beside the other, of which an optimizer holds one."""
    return BESIDE.format(held=held, mark=mark and f"  # <- {mark}", before=before, after=after)


MASKED = """
q, k = nn.Linear(4, 6), nn.Linear(4, 6)
with torch.no_grad():
    q.weight[0, 0] = float("{value}")
mask = torch.triu(torch.ones(5, 5), 1).bool()
optimizer = torch.optim.SGD([*q.parameters(), *k.parameters()], 0.1)
x = torch.rand(5, 4)
scores = q(x) @ k(x).t(){mark}
weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
learn(optimizer, (weights @ x).pow(2).mean())
"""


def masked(value: str, mark: str = "") -> str:
    """An attention of which one weight is this."""
    return MASKED.format(value=value, mark=mark and f"  # <- {mark}")


NO_GRADIENT = """
class Line(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b
    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        return gradient @ w.t(), x.t() @ gradient, torch.zeros(3)  # <- GS601
w, b = nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([w, b], 0.1)
for _ in range(3):
    x, y = batch()
    learn(optimizer, F.cross_entropy(Line.apply(x, w, b), y))
"""

# Calls that mean something else than they were written for, and those that look like them: two
# programs, each of many short trainings, so that two runs of the doctor are enough.
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

PROGRAMS = {
    "values that are kept": MEANT,
    "an encoder that is left out": beside("b", "GS307"),
    "a decoder that is left out": beside("a", "GS307"),
    "an encoder that was loaded": beside("b", before="a.load_state_dict(net(4, 8).state_dict())"),
    "an encoder in eval mode": beside("b", before="a.eval()"),
    "an encoder that learns by hand": beside(
        "b", after="for p in a.parameters(): p.data -= 0.1 * p.grad; p.grad = None"
    ),
    "a part of one module": beside("b", before="both = nn.Sequential(a, b)"),
    "an encoder that nothing random fills": beside(
        "b",
        before="for p in list(a): p.__dict__['_parameters'] = "
        "{k: nn.Parameter(v.detach() + 0) for k, v in p._parameters.items()}",
    ),
    "an infinite weight before a mask": masked("-inf", "GS105"),
    "a weight that is finite": masked("-1e2"),
    "a Function that gives a parameter zeros": NO_GRADIENT,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_everyday_mistake(name: str, session: Session) -> None:
    text = HEAD + PROGRAMS[name]
    assert sorted(session.warned(text, "--steps", "all")) == sorted(marked(text))
