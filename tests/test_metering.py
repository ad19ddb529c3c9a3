"""A gradient that is read once, or not again, has the size that torch gives it.

The slow way is to hang a hook on every node, to copy each gradient, and to take its norm alone.
"""

from __future__ import annotations

import gc
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import pytest
import torch

import gradscope
from gradscope.model.report import Report
from tests.looking import Session, new_gradient, tensor_of

START = """
    import torch
    torch.manual_seed(0)
    x = torch.randn(256, 256, requires_grad=True)
    w = torch.randn(256, 256)
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
    "double": "loss = (x.double() * 1e-200).t().sum()",
    "not finite": "loss = (x.t().sqrt().t() * 2).sum() + (x * 1e30 * 1e-30).sum()",
    "zero and tiny": "loss = (x.t() * 0).sum() + (x * 1e-30).view(-1).sum()",
    "a hook that writes": """
        y = x * 2
        y.register_hook(lambda g: g.mul_(3))
        loss = (y.view(-1) * w.view(-1)).sum()
        """,
    "a function that overwrites": """
        class Rude(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()
            @staticmethod
            def backward(ctx, g):
                return g.mul_(2)
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
    return textwrap.dedent(START) + textwrap.dedent(PROGRAMS[name]) + "\n"


def slowly(text: str) -> list[tuple[str, int, torch.Tensor]]:
    """Every gradient that a node sends in a plain backward pass: its node, slot and a copy."""
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    loss = namespace["loss"]
    found: list[tuple[str, int, torch.Tensor]] = []

    def note(node: Any, sent: tuple[torch.Tensor | None, ...]) -> None:
        for slot, gradient in enumerate(sent):
            if gradient is not None and node.next_functions[slot][0] is not None:
                name = node.name().rpartition("::")[2].replace("RudeBackward", "Rude")
                found.append((name, slot, gradient.detach().clone()))

    nodes = [loss.grad_fn]
    for node in nodes:
        nodes += [one for one, _ in node.next_functions if one is not None and one not in nodes]
        if not hasattr(node, "variable"):
            node.register_hook(lambda sent, _, node=node: note(node, sent))
    loss.backward()
    return found


Row = tuple[str, int, str, int, int, str, float]
"""Node, slot, state, NaN and infinite elements, dtype, and norm (NaN as -1, which sorts)."""


def told(report: Report) -> list[Row]:
    """What the report says of every edge along which a gradient came."""
    (backward,) = report.passes
    rows = []
    for number, edge in enumerate(report.graph.edges):
        info, op = backward.on_edge(number), report.graph.nodes[edge.source].op
        norm = float("nan" if info.norm is None else info.norm)
        rows.append((op, edge.slot, info.state, info.nan, info.inf, info.dtype, norm))
    return _sorted(rows)


def expected(sent: list[tuple[str, int, torch.Tensor]]) -> list[Row]:
    """The same in float64, each tensor for itself."""
    rows = []
    for op, slot, gradient in sent:
        elements = gradient.coalesce().values() if gradient.is_sparse else gradient
        wide = elements.to(torch.complex128 if elements.is_complex() else torch.float64)
        nan, infinite = int(wide.isnan().sum()), int(wide.isinf().sum())
        largest = float(wide.abs().max())
        state = "non-finite" if nan or infinite else "finite" if largest else "zero"
        # Divided by the largest, squares neither underflow nor overflow.
        norm = float(torch.linalg.vector_norm(wide / (largest or 1))) * largest
        norm = math.nan if nan else math.inf if infinite else norm
        dtype = str(gradient.dtype).removeprefix("torch.")
        rows.append((op, slot, state, nan, infinite, dtype, norm))
    return _sorted(rows)


def _sorted(rows: Sequence[Row]) -> list[Row]:
    return sorted((*row[:-1], -1 if math.isnan(row[-1]) else row[-1]) for row in rows)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_edge_has_the_size_that_torch_gives_it(name: str, session: Session) -> None:
    report = session.look(source(name) + "loss.backward()\n")
    found, right = told(report), expected(slowly(source(name)))
    assert [row[:-1] for row in found] == [row[:-1] for row in right]
    assert [row[-1] for row in found] == pytest.approx([row[-1] for row in right], rel=5e-5, abs=0)


def test_values_are_in_the_order_of_their_own_shape(session: Session) -> None:
    report = session.look(source("transposes") + "loss.backward()\n", "--values")
    found = tensor_of(new_gradient(report, "x"), torch.empty(256, 256))
    namespace: dict[str, Any] = {}
    exec(source("transposes") + "loss.backward()\n", namespace)
    assert torch.equal(found, namespace["x"].grad)


def test_what_accumulates_in_place_is_read_again(session: Session) -> None:
    program = source("transposes") + "loss.backward(retain_graph=True)\nloss.backward()\n"
    backward = session.look(program, "--call", "2").passes[0]
    (entry,) = backward.accumulations
    before, after = backward.gradients[entry.before or 0], backward.gradients[entry.after or 0]
    assert float(after.norm or 0) == pytest.approx(2 * float(before.norm or 0))
    assert float(before.norm or 0) == backward.gradients[entry.new].norm


def test_nothing_stays_behind_however_often_one_looks() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    batch = torch.ones(4, 8)

    def look() -> int:
        with gradscope.record() as run:
            loss = model(batch).sum()
            run.backward(loss)
            loss.backward()
        del loss, run
        gc.collect()
        return len(gc.get_objects())

    sizes = [look() for _ in range(20)]
    # What a look leaves behind is there as often as one looked; other threads of
    # the test run may make an object or two of their own meanwhile.
    assert sizes[-1] - sizes[5] < len(sizes) - 6, sizes
