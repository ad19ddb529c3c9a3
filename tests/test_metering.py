"""A gradient that is read once, or not again, has the size that torch gives it.

The slow way is to hang a hook on every node, to copy each gradient, and to take its norm alone.
"""

from __future__ import annotations

import math
import textwrap
from typing import Any

import pytest
import torch

from tests.bare import hook, walked
from tests.beside import paired
from tests.looking import Session
from tests.own_functions import function

START = f"""
import torch
torch.manual_seed(0)
x = torch.randn(256, 256, requires_grad=True)
w = torch.randn(256, 256)
{function("Rude", "x.clone()", "grad.mul_(2)")}
"""

PROGRAMS = {
    "views": "loss = (x.view(65536).reshape(128, 512).unsqueeze(1).flatten(1) * 2).sin().sum()",
    "transposes": """
        loss = (x.t() @ w).view(4, 64, 256).permute(2, 0, 1).reshape(256, 256).cos().sum()
        """,
    "expand": "loss = (x[:1].expand(256, 256) * w).sum()",
    "slices": "a, b = x.chunk(2); loss = (a * 3).sin().sum() + (b[:, ::2] * 2).sum()",
    "shared": "y = x.sin(); loss = (y + y.t()).sum() + (y * y).sum() + y.sum()",
    "many uses": "loss = sum((x * k).sin().sum() for k in range(1, 7))",
    "in place": "y = x * 1; y.mul_(2); y[3:5] = 0; y.t_(); loss = (y * w).sum()",
    "sparse": """
        table = torch.nn.Embedding(200, 256, sparse=True)
        loss = (table(torch.arange(150).repeat(2)) * 2).sum()
        """,
    "half": "loss = (x.half() * 300).t().float().sum() + (x.bfloat16() @ w.bfloat16()).sum()",
    "complex": "z = torch.complex(x, w); loss = (z * z.conj().t()).abs().sum() + z.imag.sum()",
    "complex half": """
        z = torch.complex(x, w).to(torch.complex32).to(torch.complex64)
        loss = z.abs().sum()
        """,
    "large": "loss = (x * 1e25).t().sum() + (x[:3, :3] * 1e25).sum()",
    "double": "loss = (x.double() * 1e-200).t().sum()",
    "not finite": "loss = (x.t().sqrt().t() * 2).sum() + (x * 1e30 * 1e-30).sum()",
    "zero and tiny": "loss = (x.t() * 0).sum() + (x * 1e-30).view(-1).sum()",
    "a hook that writes": """
        y = x * 2
        y.register_hook(lambda g: g.mul_(3))
        loss = (y.view(-1) * w.view(-1)).sum()
        """,
    "a function that overwrites": """
        loss = (Rude.apply(x.t() * 1).t() * w).sum()
        """,
    "millions": """
        y = x.repeat(40, 1) * 1
        loss = y.mean() + 3.1 * y.t().sum() + (y.t() * 1).mean() + (y[:, 1:] * 1).mean()
        """,
    "millions in steps": """
        y = x.flatten().repeat(40)
        loss = torch.as_strided(y, (1_000_000,), (2,)).mean() + (y[::2] * 1).mean()
        """,
    "a zero without memory": "loss = (x[:4, :4] * 2).sgn().sum() + (x * 2).sgn().sum()",
    "small": "y = x[:4, :4]; z = y.t() + y; loss = (z * z.t().reshape(4, 4)).sum()",
}


def source(name: str) -> str:
    return START + textwrap.dedent(PROGRAMS[name]) + "\n"


def size_of(gradient: torch.Tensor) -> tuple[str, int, int, str, float]:
    """State, NaN and infinite elements, dtype and norm, in float64 and each tensor for itself."""
    elements = gradient.coalesce().values() if gradient.is_sparse else gradient
    wide = elements.to(torch.complex128 if elements.is_complex() else torch.float64)
    nan, infinite = int(wide.isnan().sum()), int(wide.isinf().sum())
    largest = float(wide.abs().max())
    state = "non-finite" if nan or infinite else "finite" if largest else "zero"
    # Divided by the largest, squares neither underflow nor overflow.
    norm = float(torch.linalg.vector_norm(wide / (largest or 1))) * largest
    norm = math.nan if nan else math.inf if infinite else norm
    return state, nan, infinite, str(gradient.dtype).removeprefix("torch."), norm


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_edge_has_the_size_that_torch_gives_it(name: str, session: Session) -> None:
    report = session.look(source(name) + "loss.backward()\n")
    left: dict[str, Any] = {}
    exec(source(name), left)
    expected = walked([left["loss"]])
    hook(expected)
    left["loss"].backward()
    pairs = paired(report, expected)
    for number, edge in enumerate(report.graph.edges):
        sent = expected.sent[pairs[edge.source]][edge.slot]
        assert sent is not None
        *told, norm = size_of(sent)
        info = report.passes[0].on_edge(number)
        assert [info.state, info.nan, info.inf, info.dtype] == told, edge
        assert float(info.norm or 0) == pytest.approx(norm, rel=5e-5, abs=0, nan_ok=True), edge
