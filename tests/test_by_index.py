"""Tensors taken by an index: sums that overwrite each other where it names an element twice, and
the gradient by a part that the result was not computed from; and what is left alone."""

from __future__ import annotations

import pytest

from gradscope.model import storage
from tests.looking import Session

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
net, rows = nn.Linear(4, 4), nn.Embedding(6, 4)
x, index = torch.randn(5, 4), torch.tensor([0, 2, 2, 1, 0])
def by(result, *inputs, **more):
    return torch.autograd.grad(result.sum(), inputs, allow_unused=True, create_graph=True, **more)
"""

# By the body of a program: the finding with its severity and expression, or none.
TOLD: dict[str, tuple[str, str, str] | None] = {
    "out = torch.zeros(3, 4); out[index] += net(x); out.sum().backward()": (
        "GS517",
        "warning",
        "out[index]",
    ),
    "out = torch.zeros(3, 4); out[index] -= net(x); out.sum().backward()": (
        "GS517",
        "warning",
        "out[index]",
    ),
    "out = torch.zeros(4, 5, 3); out[:, 1, index] = net(x).T + out[:, 1, index]\n"
    "out.sum().backward()": (
        "GS517",
        "warning",
        "out[:, 1, index] = net(x).T + out[:, 1, index]",
    ),
    # Each element is named once, whether by a permutation, a mask or negative numbers.
    "out = torch.zeros(5, 4); out[torch.randperm(5)] += net(x); out.sum().backward()": None,
    "out = torch.zeros(5, 4); out[index > 0] += net(x[index > 0]); out.sum().backward()": None,
    "out = torch.zeros(5, 4); out[index[1:2]] += net(x[1:2]); out.sum().backward()": None,
    # The row that is named twice gets its one new value twice.
    "out = net(torch.ones(3, 4)); step = net(x)[:3]; out = out * 1\n"
    "out[index] += step[index]; out.sum().backward()": None,
    # Nothing is read before it is written, or the sum is meant for another place.
    "out = torch.zeros(3, 4); out[index] = net(x); out.sum().backward()": None,
    "out = torch.ones(3, 4); new = torch.zeros(3, 4); new[index] = out[index] + net(x)\n"
    "new.sum().backward()": None,
    "out = torch.zeros(3, 4); out.index_add_(0, index, net(x)); out.sum().backward()": None,
    # No gradient is lost where none is wanted.
    "out = torch.zeros(3, 4)\n"
    "with torch.no_grad(): out[index] += net(x)\n"
    "(net(x).sum() + out.sum()).backward()": None,
    # The gradient by a part of what the result was computed from.
    "x.requires_grad_(); y = net(x); a = x[:, :1]; by(y, a); y.sum().backward()": (
        "GS306",
        "warning",
        "x[:, :1]",
    ),
    "x.requires_grad_(); a = x.T.unbind(); y = net(x); by(y, a[1], materialize_grads=True)\n"
    "y.sum().backward()": ("GS306", "warning", "x.T.unbind()"),
    "a, b = (torch.randn(5, 2, requires_grad=True) for _ in '12')\n"
    "y = net(torch.cat([a, b], 1)); c = torch.cat([a, b], 1); by(y, c); y.sum().backward()": (
        "GS306",
        "warning",
        "torch.cat([a, b], 1)",
    ),
    "h = net(x); y = h.tanh(); by(y, h.view(-1)); y.sum().backward()": (
        "GS306",
        "warning",
        "h.view(-1)",
    ),
    "x.requires_grad_(); y = net(x); a = x[:, :1]; by(y, a); torch.autograd.grad(y.sum(), a)": (
        "GS306",
        "error",
        "x[:, :1]",
    ),
    # The part is what went in; and of all parts, not each need be used.
    "x.requires_grad_(); a, b = x[:, :2], x[:, 2:]; y = net(torch.cat([a, b], 1)); by(y, a, b)\n"
    "y.sum().backward()": None,
    "x.requires_grad_(); a = [x[:, n] for n in range(4)]; y = a[0] * a[2]; by(y, *a)\n"
    "(y * net(x)[:, 0]).sum().backward()": None,
    "q, k, v = net(x).split([1, 1, 2], 1); y = q * k; by(y, q, k, v); y.sum().backward()": None,
    # Leaves, what other leaves went into, and what is more than a part: as in meta-learning.
    "y = net(x); by(y, *net.parameters(), *rows.parameters()); y.sum().backward()": None,
    "y = net(x); by(y, rows.weight[:2], rows(index)); y.sum().backward()": None,
    "fast = [w - 0.1 * w.detach() for w in net.parameters()]; y = net(x); by(y, *fast)\n"
    "y.sum().backward()": None,
    "fast = [w.clone() for w in net.parameters()]; y = net(x); by(y, *fast)\n"
    "y.sum().backward()": None,
}


@pytest.mark.parametrize("body", TOLD)
def test_what_is_told_of_an_index(session: Session, body: str) -> None:
    saved = session.folder / "report.json"
    done = session.cli("doctor", str(session.write(HEAD + body)), "-q", "-o", str(saved))
    assert saved.exists(), done.err
    found = [
        (one.rule, one.severity, one.location.expression)
        for one in storage.load(saved).findings
        if one.location is not None and one.rule in ("GS306", "GS517")
    ]
    told = TOLD[body]
    assert found == ([] if told is None else [told])
