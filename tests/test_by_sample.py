"""What each sample brings where samples travel together: against torch by hand, one at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradscope
from gradscope.model.report import Report
from gradscope.model.studies import Split
from tests.looking import Session
from tests.own_functions import function
from tests.test_split import START, gradient_of, leaf, left_by, split_of

HALVES = {torch.bfloat16: 3e-2, torch.float16: 5e-3}


NETS = """
# linear layers
net = S(L(4, 6), nn.ReLU(), L(6, 3))
out = net(x(4))

# weights on the left
net = L(4, 3, bias=False)
out = (net.weight @ x(4).T).T

# a scaled product
w, b = P(4, 3), P(3)
out = torch.addmm(b, x(4), w, alpha=0.5, beta=2)

# a batch of products
w = P(4, 3)
out = torch.baddbmm(x(2, 3), x(2, 4), w.expand(N, 4, 3)).sum(1)

# broadcast
a, b, c = P(4), P(5, 1), P(1, 1, 4)
out = (x(5, 4) * a + b - c / 2).tanh().sum(1)

# convolutions
net = S(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2, groups=2))
out = net(x(2, 7, 6)).flatten(1)

# a transposed convolution
net = nn.ConvTranspose1d(2, 3, 3, stride=2)
out = net(x(2, 5)).flatten(1)

# norms
net = S(nn.Conv1d(2, 4, 1), nn.GroupNorm(2, 4), nn.BatchNorm1d(4).eval(), nn.LayerNorm((4, 5)))
net[2].running_var.fill_(2.0)
out = net(x(2, 5)).flatten(1)

# embeddings
net = nn.ModuleList([nn.Embedding(7, 4, padding_idx=2), nn.Embedding(5, 4)])
out = (net[0](ids(7, 5)) + net[1](torch.arange(5))).tanh().sum(1)

# an embedding of as many as samples
net = nn.Embedding(N, 4)
out = net(torch.arange(N)).tanh()

# embeddings that torch counts
net = nn.Embedding(7, 4, scale_grad_by_freq=True)
out = net(ids(7, 5)).tanh().sum(1)

# a layer that is used twice
net = L(4, 4)
h = net(net(x(5, 4)).relu())
out = net(h.mean(1))

# attention
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = L(8, 24, bias=False), L(8, 8)
    def forward(self, x):
        parts = self.qkv(x).split(8, 2)
        q, k, v = (part.view(*x.shape[:2], 2, 4).transpose(1, 2) for part in parts)
        mixed = (q @ k.transpose(-2, -1)).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).reshape(x.shape))
net = S(nn.LayerNorm(8), Attention())
out = net(x(5, 8)).mean(1)

# a GRU
net = nn.GRU(3, 4, batch_first=True)
out = net(x(5, 3))[0][:, -1]

# views twice
net = L(4, 3)
batch = torch.cat([x(4), x(4)])
one, two = net(batch).chunk(2)
out = one * two

# changed in place
net = L(4, 6)
h = net(x(4)) * 1
h[:, 2:4] *= 3
h.relu_()
out = h

# another order -> Index
net = L(4, 3)
out = net(x(4))[torch.arange(N).roll(1)] + 0.5 * net(x(4))

# a backward of its own
net = L(4, 3)
out = Clipped.apply(net(x(4)))

# a backward that is silent at times
net = L(4, 3)
out = Silent.apply(net(x(4))) - 0.1 * net(x(4))

# float8 on the way
net = L(4, 3)
out = net(x(4)).to(torch.float8_e5m2).float() * 300

# a sparse matrix
w, b = P(4, 3), P(3)
out = torch.addmm(b, torch.eye(N).to_sparse(), x(4) @ w)

# a batch norm -> NativeBatchNorm
net = S(L(4, 6), nn.BatchNorm1d(6), nn.ReLU(), L(6, 3))
out = net(x(4))

# one sample that is NaN
net = L(4, 3)
out = net(x(4)) * torch.tensor([float('nan')] + [1.0] * (N - 1)).view(-1, 1)

# some that bring little
net = S(L(4, 6), nn.LayerNorm(6), L(6, 3))
out = net(x(4)) * torch.tensor([1e-6 if row % 3 else 1.0 for row in range(N)]).view(-1, 1)

# complex numbers
w = P(4, 3, dtype=torch.complex64)
out = torch.view_as_real(x(4).to(torch.complex64) @ w).flatten(1)

# bfloat16
net = S(L(4, 6), nn.LayerNorm(6), L(6, 3)).bfloat16()
out = net(x(5, 4).bfloat16()).sum(1)

# autocast
net = S(L(4, 6), nn.LayerNorm(6), L(6, 3))
with torch.autocast('cpu'):
    out = net(x(5, 4)).sum(1)
"""
"""Programs that make ``out``, with a row for each sample, and the operation that mixes them."""

MADE = """
L, S = nn.Linear, nn.Sequential

def x(*shape):
    return torch.randn(N, *shape)

def ids(most, *shape):
    return torch.randint(most, (N, *shape))

def P(*shape, dtype=None):
    return nn.Parameter(torch.randn(shape, dtype=dtype))

"""
MADE += function("Clipped", "x * 1", "grad.clamp(max=0.01)")
MADE += function("Silent", "x * 1", "None if grad.sum() > 0 else grad")

SECTIONS = dict(one.split("\n", 1) for one in NETS.strip("\n# ").split("\n\n# "))


def check(session: Session, title: str, size: int) -> None:
    """Look at a program, and compare each sample with torch's gradient of its row of ``out``."""
    source = (
        f"{START}\nN = {size}\n{MADE}\n{SECTIONS[title]}\nloss = (out * 1.5).sigmoid().mean()\n"
    )
    report = session.look(f"{source}loss.backward()\n", "--by", "sample:out")
    split = split_of(report)
    left = left_by(source)
    loss, out = left["loss"], left["out"]
    (sent,) = torch.autograd.grad(loss, out, retain_graph=True)
    assert [one.index for one in split.pieces] == [(row,) for row in range(size)]
    compare(report, split, [(one * two).sum() for one, two in zip(out, sent, strict=True)], left)
    mixes = title.partition(" -> ")[2]
    mixing = split.mixing
    assert (mixing is not None) == bool(mixes)
    if mixing is not None:
        assert report.graph.nodes[mixing.node].short_op == mixes


@pytest.mark.parametrize("title", SECTIONS)
def test_each_sample_brings_what_torch_says(title: str, session: Session) -> None:
    check(session, title, size=19)  # more than are compared with each other


@pytest.mark.parametrize(
    ("limit", "most"),
    [("study.MOST_APART", 16), ("batch.MOST_BYTES", 0), ("batch.MOST_BYTES", 4_000)],
)
@pytest.mark.parametrize("title", ["linear layers", "a batch norm -> NativeBatchNorm"])
def test_what_is_too_large_is_sent_in_parts(
    title: str, limit: str, most: int, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"gradscope.analyses.split.{limit}", most)
    check(session, title, size=40)


def compare(
    report: Report, split: Split, wanted: list[torch.Tensor], namespace: dict[str, Any]
) -> None:
    assert len(split.leaves) == len(report.graph.leaves)
    for one in split.leaves:
        tensor = leaf(report.graph.leaves[one.leaf].names[0], namespace)
        rows = torch.stack([gradient_of(value, tensor) for value in wanted])
        norms = rows.norm(dim=1)
        kinds = {namespace["out"].dtype, tensor.dtype}
        slack = max(HALVES.get(kind, 1e-4) for kind in kinds)
        largest = norms.nan_to_num().max().item()
        told = torch.tensor([float(norm) for norm in one.norms], dtype=norms.dtype)
        torch.testing.assert_close(told, norms, rtol=slack, atol=1e-7 * largest, equal_nan=True)


COUNTED = """
import types
calls, outside = [], types.ModuleType("outside")
outside.shapes = calls
def seen(gradient):
    outside.shapes.append(gradient.shape)
    return gradient * 2
"""
COUNTED += function("Doubled", "x * 2", "seen(grad)")
"""A custom Function whose backward tells how often it was called, in a module, which is not put
back."""


@pytest.mark.parametrize(
    ("norm", "size", "calls"),
    [
        ("nn.LayerNorm(6)", 40, 2),
        ("nn.LayerNorm(6)", 256, 2),
        ("nn.LayerNorm(6)", 257, 4),
        ("nn.BatchNorm1d(6)", 40, 40),
    ],
)
def test_samples_travel_together_until_they_mix(norm: str, size: int, calls: int) -> None:
    text = f"""
first, norm, last = nn.Linear(4, 6), {norm}, nn.Linear(6, 3)
out = last(norm(Doubled.apply(first(torch.randn({size}, 4)))))
loss = out.sigmoid().mean()
"""
    left = left_by(START + COUNTED + text)
    report = gradscope.backward(left["loss"], by="sample")
    assert len(split_of(report).pieces) == size
    assert len(left["calls"]) == calls + 1  # and once for the gradient that is shown
