"""An answer of gradscope beside what plain torch says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from gradscope.model import storage
from gradscope.model.explanation import Local
from gradscope.model.invariants import EPSILON
from gradscope.model.invariants import check as check_invariants
from gradscope.model.report import GradientInfo, Node, Report
from gradscope.model.studies import Checks
from tests.bare import Gradient, Plain, Tensors
from tests.looking import Session, tensor_of

ROUNDING = 1e-4
"""How far sums of float32 numbers may be from one another, relative to their largest term."""


def answered(session: Session, command: str, *words: str, status: int = 0) -> Report:
    """The answer of a command, saved, read again, and shown again by the command itself.

    Args:
        session: the user.
        command: the command, and after it its options and its target.
        status: the highest exit status that is right.
    """
    name = "answer.json"
    (session.folder / name).unlink(missing_ok=True)
    done = session.cli(command, "-o", name, *words)
    assert done.status <= status, done
    assert "Traceback" not in done.err, done.err
    report = storage.load(session.folder / name)
    check_invariants(report)
    assert storage.decode(storage.encode(report)) == report
    again = session.cli("show" if command in ("trace", "backward") else command, name)
    assert (again.status, again.err) == (done.status, ""), again
    assert again.out
    return report


class Examined:
    """A program through the commands, each answer beside what plain torch says; and what was
    counted on the way, for the tables in the docs."""

    def __init__(self, session: Session, *program: str) -> None:
        self.session = session
        self.program = program
        self.counts: Counter[str] = Counter()

    def looked_at(self, command: str, *options: str, status: int = 0) -> Report:
        """The answer of a command."""
        return answered(self.session, command, *options, *self.program, status=status)

    def backward(self, expected: Plain, leaves: Callable[[], Tensors]) -> Report:
        """Nodes and edges are those of a bare walk, gradients those of torch; ``leaves`` are those
        of the program when it has ended."""
        report = self.looked_at("backward", "--run-on", "--values")
        same_grads(leaves(), expected)
        same_graph_and_flow(report, expected)
        self.counts["nodes"] += len(expected.nodes)
        self.counts["edges"] += len(expected.edges)
        return report

    def check(self, may_be_wrong: bool) -> Checks:
        """No derivative is called wrong, but where it may be."""
        checks = self.looked_at("check", status=int(may_be_wrong)).checks
        assert checks is not None
        assert may_be_wrong or not checks.is_wrong, checks
        self.counts.update(f"calls {one.verdict}" for one in checks.calls)
        self.counts.update(f"leaves {one.verdict}" for one in checks.leaves)
        return checks

    def memory(self, kept: Callable[[], int]) -> Report:
        """The bytes are those that saved-tensor hooks see, where no hook hides any."""
        report = self.looked_at("memory")
        memory = report.memory
        assert memory is not None
        if not memory.hidden:
            assert memory.total("activation", "parameter", "buffer", "input") == kept()
            self.counts["graphs whose bytes were seen"] += 1
        return report

    def doctor(self, expected: Plain, leaves: Callable[[], Tensors]) -> None:
        """It has seen the call, and left ``.grad`` as it is."""
        report = self.looked_at("doctor", status=1)
        same_grads(leaves(), expected)
        seen = report.observations
        assert seen is not None and seen.watched
        assert not any("could not" in note or "not every" in note for note in report.notes)
        assert not any(one.rule == "GS410" for one in report.findings)
        self.counts.update(f"findings {one.rule}" for one in report.findings)


# ---------------------------------------------------------------- numbers of an explanation


def row(amount: GradientInfo) -> torch.Tensor | None:
    """An amount as a tensor, where its values are known."""
    values = amount.values
    return None if values is None else torch.tensor([float(v) for v in values]).double()


def jacobian(local: Local) -> torch.Tensor:
    """A local derivative as a whole matrix."""
    values = torch.tensor([float(value) for value in local.values]).double()
    return torch.diag(values) if local.diagonal else values.reshape(local.shape)


# ---------------------------------------------------------------- graphs


def comparable(report: Report) -> list[Any]:
    """What of a graph two commands must agree on."""
    graph = report.graph
    nodes = [(one.op, one.kind, graph.origin_of(one), one.variable) for one in graph.nodes]
    return [nodes, graph.edges, graph.roots]


def paired(report: Report, expected: Plain) -> dict[int, int]:
    """The node of the bare walk for each of the report's, going along both from the roots."""
    follow = {(source, slot): (target, to) for source, slot, target, to in expected.edges}
    pairs: dict[int, int] = {}
    for root, (node, output) in zip(report.graph.roots, expected.roots, strict=True):
        assert root.output == output
        assert pairs.setdefault(root.node, node) == node
    for edge in report.graph.edges:
        target, output = follow[pairs[edge.source], edge.slot]
        assert edge.output == output
        assert pairs.setdefault(edge.target, target) == target
    assert len(set(pairs.values())) == len(pairs)
    return pairs


# ---------------------------------------------------------------- gradients


def same_graph_and_flow(report: Report, expected: Plain) -> None:
    """Nodes and edges are those of a bare walk, and at each is the gradient that a hook saw."""
    pairs = paired(report, expected)
    assert len(report.graph.nodes) == len(expected.nodes)
    assert len(report.graph.edges) == len(expected.edges)
    (passed,) = report.passes
    for node, live in pairs.items():
        same_name(report.graph.nodes[node], expected.nodes[live])
        given = expected.upstream.get(live, ())
        for output in range(len(report.graph.nodes[node].outputs)):
            wanted = given[output] if output < len(given) else None
            same_gradient(passed.at(node, output), wanted, live in expected.upstream)
    for number, edge in enumerate(report.graph.edges):
        sent = expected.sent.get(pairs[edge.source])
        wanted = None if sent is None else sent[edge.slot]
        same_gradient(passed.on_edge(number), wanted, sent is not None)


def same_name(node: Node, live: Any) -> None:
    """A node of torch's own has torch's name, without the namespace."""
    if node.kind not in ("custom", "opaque"):
        assert node.op.rpartition("::")[2] == live.name().rpartition("::")[2]


def same_grads(leaves: Tensors, expected: Plain) -> None:
    """The program's leaves hold what they hold without gradscope, to the last bit."""
    for leaf, wanted in zip(leaves, expected.leaves, strict=True):
        assert (leaf.grad is None) == (wanted is None)
        assert leaf.grad is None or same_bits(leaf.grad, wanted)


def same_bits(found: torch.Tensor, wanted: Any) -> bool:
    """Whether two tensors are equal, NaN included."""
    if found.layout is not torch.strided:
        found, wanted = found.to_dense(), wanted.to_dense()
    found, wanted = (one.to(_wide(one)) for one in (found, wanted))  # exact
    return torch.equal(found.isnan(), wanted.isnan()) and torch.equal(
        found.nan_to_num(), wanted.nan_to_num()
    )


def same_gradient(info: GradientInfo, wanted: Gradient, was_reached: bool) -> None:
    """State, values and norm of a gradient are those of the tensor that a hook saw."""
    if wanted is None:
        # Torch hands None for an output that no edge brought anything to, as for one that got None.
        assert info.state in (("none", "not reached") if was_reached else ("not reached",))
        return
    dense = wanted if wanted.layout is torch.strided else wanted.to_dense()
    finite = bool(dense.isfinite().all())
    state = ("finite" if bool(dense.any()) else "zero") if finite else "non-finite"
    assert info.state == state, (info, wanted)
    if info.values is not None:
        assert same_bits(tensor_of(info, dense), dense)
    norm = float(torch.linalg.vector_norm(dense.to(_wide(dense))))
    assert close(float(info.norm or 0), norm, norm), (info, norm)


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.complex128 if tensor.is_complex() else torch.float64


def close(found: float, wanted: float, scale: float, rounding: float = ROUNDING) -> bool:
    """Whether two numbers are the same but for rounding; what is not finite is the same."""
    if not (math.isfinite(found) and math.isfinite(wanted)):
        return str(found) == str(wanted)
    return abs(found - wanted) <= rounding * max(abs(scale), EPSILON["float16"])
