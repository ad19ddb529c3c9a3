"""What holds for any program: the invariants, torch's own numbers, and nothing changed by looking.

The invariants of the Report, sums over edges among them, are checked whenever one is made."""

from __future__ import annotations

import os

import msgspec
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradscope
from gradscope import storage
from gradscope.invariants import check
from gradscope.report import GradientInfo, Report
from tests.looking import tensor_of
from tests.random_programs import Program, programs

SETTINGS = settings(
    max_examples=int(os.environ.get("GRADSCOPE_EXAMPLES", "30")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def looked_at(program: Program) -> tuple[dict[str, torch.Tensor], torch.Tensor, Report]:
    """Build a program while it is recorded, and send a gradient through it."""
    with gradscope.record() as run:
        v, root = program.build()
    return v, root, run.backward(root)


def same_bits(info: GradientInfo, expected: torch.Tensor | None) -> bool:
    """Whether a gradient is exactly the one that torch gives; not there where torch has none."""
    if expected is None:
        return info.state in ("none", "not reached")
    if info.values is None:
        return expected.numel() > 16
    return torch.equal(tensor_of(info, expected), expected)


def comparable(report: Report) -> Report:
    """A report without what may differ between two runs."""
    return msgspec.structs.replace(report, meta=msgspec.structs.replace(report.meta, created=""))


@SETTINGS
@given(programs())
def test_gradients_are_bit_for_bit_those_of_an_unwatched_run(program: Program) -> None:
    plain, root = program.build()
    names = ("a", "b", "c")
    expected = torch.autograd.grad(root, [plain[name] for name in names], allow_unused=True)
    _, _, report = looked_at(program)
    backward = report.passes[0]
    found = {
        name: backward.gradients[entry.new]
        for leaf, entry in zip(report.graph.leaves, backward.accumulations, strict=True)
        for name in leaf.names
    }
    for name, gradient in zip(names, expected, strict=True):
        info = found.get(f"v['{name}']", GradientInfo("not reached"))
        assert same_bits(info, gradient), name


@SETTINGS
@given(programs())
def test_what_reaches_every_result_is_what_torch_says(program: Program) -> None:
    v, root, report = looked_at(program)
    for node in report.graph.nodes:
        name = node.variable.removeprefix("v['").removesuffix("']")
        if name not in v or v[name].output_nr:
            continue
        (expected,) = torch.autograd.grad(root, v[name], retain_graph=True, allow_unused=True)
        assert same_bits(report.passes[0].at(node.id), expected), name


@SETTINGS
@given(programs())
def test_looking_changes_nothing(program: Program) -> None:
    v, root, report = looked_at(program)
    leaves = [v[name] for name in ("a", "b", "c")]
    kept = torch.ones_like(leaves[0])
    leaves[0].grad = kept
    state = torch.get_rng_state()
    again = gradscope.backward(root)
    assert leaves[0].grad is kept
    assert torch.equal(kept, torch.ones_like(kept))
    assert leaves[1].grad is None
    assert torch.equal(torch.get_rng_state(), state)
    assert again.passes[0].gradients == report.passes[0].gradients
    assert again.passes[0].edges == report.passes[0].edges
    assert report.passes[0].altered == ()
    assert all(not tensor._backward_hooks for tensor in v.values() if tensor.requires_grad)


@SETTINGS
@given(programs())
def test_the_same_program_gives_the_same_report_and_survives_being_saved(program: Program) -> None:
    _, _, report = looked_at(program)
    _, _, again = looked_at(program)
    assert comparable(report) == comparable(again)
    loaded = storage.decode(storage.encode(report))
    check(loaded)
    assert storage.encode(loaded) == storage.encode(report)


@SETTINGS
@given(programs(), st.integers(0, 50))
def test_a_hook_of_the_program_is_found_where_it_is(program: Program, choice: int) -> None:
    with gradscope.record() as run:
        v, root = program.build()
    hooked = [name for name, tensor in v.items() if tensor.requires_grad and not tensor.output_nr]
    name = hooked[choice % len(hooked)]
    seen: list[torch.Tensor] = []

    def triple(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(gradient)
        return gradient * 3

    v[name].register_hook(triple)  # type: ignore[no-untyped-call]
    report = run.backward(root)
    altered = report.passes[0].altered
    changed = bool(seen) and not torch.allclose(seen[0] * 3, seen[0])
    assert len(altered) == int(changed)
    if changed:
        node = report.graph.nodes[altered[0]]
        leaf = next((leaf for leaf in report.graph.leaves if leaf.node == node.id), None)
        # What a statement like `y[0] = 3` changed has no other name than the statement.
        names = [node.variable or f"v['{name}']"] if leaf is None else list(leaf.names)
        assert f"v['{name}']" in names
