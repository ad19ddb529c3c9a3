"""What holds for any graph: the invariants, torch's own numbers, and nothing changed by looking.

The invariants of the Report, sums over edges among them, are checked whenever one is made.  Whole
programs under whole commands are in ``test_fuzz.py``; here is what only python can see."""

from __future__ import annotations

import math
import os
from functools import cache

import msgspec
import pytest
import torch

import gradscope
from gradscope.model import storage
from gradscope.model.invariants import check
from gradscope.model.report import GradientInfo, Report
from tests.fuzz.graphs import GraphProgram, Tensors, graph_program
from tests.looking import tensor_of

NUMBERS = range(int(os.environ.get("GRADSCOPE_EXAMPLES", "20")))
every_program = pytest.mark.parametrize("number", NUMBERS)

program_of = cache(graph_program)


def looked_at(program: GraphProgram) -> tuple[Tensors, torch.Tensor, Report]:
    """Build a program while it is recorded, and send a gradient through it."""
    with gradscope.record() as run:
        v, root = program.build()
    return v, root, run.backward(root)


@cache
def seen_of(number: int) -> tuple[Tensors, torch.Tensor, Report]:
    """The same, for those who only read."""
    return looked_at(program_of(number))


def leaves_of(tensors: Tensors) -> list[str]:
    """The names of the leaves, each leaf once."""
    named = {id(one): name for name, one in tensors.items() if one.requires_grad and one.is_leaf}
    return list(named.values())


def same_bits(info: GradientInfo, expected: torch.Tensor | None) -> bool:
    """Whether a gradient is exactly the one that torch gives; not there where torch has none."""
    if expected is None:
        return info.state in ("none", "not reached")
    if info.values is None:
        return expected.numel() > 16 or expected.layout is not torch.strided
    return torch.allclose(tensor_of(info, expected), expected, rtol=0, atol=0, equal_nan=True)


def comparable(report: Report) -> Report:
    """A report without what may differ between two runs."""
    return msgspec.structs.replace(report, meta=msgspec.structs.replace(report.meta, created=""))


@every_program
def test_gradients_are_bit_for_bit_those_of_an_unwatched_run(number: int) -> None:
    plain, root = program_of(number).build()
    names = leaves_of(plain)
    expected = torch.autograd.grad(root, [plain[name] for name in names], allow_unused=True)
    v, _, report = seen_of(number)
    backward = report.passes[0]
    found = {
        name: backward.gradients[entry.new]
        for leaf, entry in zip(report.graph.leaves, backward.accumulations, strict=True)
        for name in leaf.names
    }
    for name, gradient in zip(names, expected, strict=True):
        info = found.get(f"v['{name}']", found.get(name, GradientInfo("not reached")))
        assert same_bits(info, gradient), name
    assert v.keys() == plain.keys()


@every_program
def test_what_reaches_every_result_is_what_torch_says(number: int) -> None:
    v, root, report = seen_of(number)
    seen = 0
    for node in report.graph.nodes:
        result = v.get(node.variable)
        # Several outputs of one node have one name each; a variable may have been changed since.
        if result is None or result.output_nr or len(node.outputs) > 1:
            continue
        if result.grad_fn is None or result.grad_fn.name() != node.op:
            continue
        (expected,) = torch.autograd.grad(root, result, retain_graph=True, allow_unused=True)
        assert same_bits(report.passes[0].at(node.id), expected), node.variable
        seen += 1
    assert seen or len(report.graph.nodes) == len(report.graph.leaves)


@every_program
def test_looking_changes_nothing(number: int) -> None:
    v, root, report = looked_at(program_of(number))
    first, *others = (v[name] for name in leaves_of(v))
    kept = torch.ones_like(first)
    first.grad = kept
    before = [one.grad for one in others]
    state = torch.get_rng_state()
    again = gradscope.backward(root)
    assert first.grad is kept
    assert torch.equal(kept, torch.ones_like(kept))
    assert all(one.grad is grad for one, grad in zip(others, before, strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    assert again.passes[0].gradients == report.passes[0].gradients
    assert again.passes[0].edges == report.passes[0].edges
    assert report.passes[0].altered == ()
    assert all(not tensor._backward_hooks for tensor in v.values() if tensor.requires_grad)


@every_program
def test_the_same_program_gives_the_same_report_and_survives_being_saved(number: int) -> None:
    _, _, report = seen_of(number)
    _, _, again = looked_at(program_of(number))
    assert comparable(report) == comparable(again)
    loaded = storage.decode(storage.encode(report))
    check(loaded)
    assert storage.encode(loaded) == storage.encode(report)


@every_program
def test_a_hook_of_the_program_is_found_where_it_is(number: int) -> None:
    with gradscope.record() as run:
        v, root = program_of(number).build()
    hooked = [name for name, tensor in v.items() if tensor.requires_grad and not tensor.output_nr]
    name = hooked[number * 7 % len(hooked)]
    seen: list[torch.Tensor] = []

    def triple(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(gradient)
        return gradient * 3

    v[name].register_hook(triple)  # type: ignore[no-untyped-call]
    report = run.backward(root)
    altered = report.passes[0].altered
    changed = bool(seen) and not torch.allclose(seen[0] * 3, seen[0], equal_nan=True)
    assert len(altered) == int(changed)
    if changed:
        node = report.graph.nodes[altered[0]]
        leaf = next((leaf for leaf in report.graph.leaves if leaf.node == node.id), None)
        assert math.isfinite(len(node.outputs))
        names = [node.variable] if leaf is None else list(leaf.names)
        assert names
