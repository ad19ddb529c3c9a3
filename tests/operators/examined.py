"""One case through every command, each answer beside what plain torch says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gradscope import storage
from gradscope.checks import Checks
from gradscope.explanation import Amount, Explanation, Local, Ways
from gradscope.invariants import check as check_invariants
from gradscope.report import GradientInfo, Report
from gradscope.sums import EPSILON
from tests.looking import Session, tensor_of
from tests.operators import plain
from tests.operators.database import LATEST, Case
from tests.operators.plain import Gradient, Plain

WRONG = {
    "as_strided_scatter": "its derivative by the input is not that of forward",
    "nn.functional.max_unpool1d": "the indices of the samples come twice, and only one counts",
    "nn.functional.max_unpool2d": "the indices of the samples come twice, and only one counts",
    "nn.functional.max_unpool3d": "the indices of the samples come twice, and only one counts",
    "renorm": "with the infinite norm the gradient is NaN in complex64, and right in complex128",
}
"""What torch itself gets wrong for some samples of its own, and how."""

PROGRAM = str(Path(__file__).parent / "program.py")

Slack = Callable[[], float]
"""How far a sum may be off, where that takes time to find out."""

ROUNDING = 1e-4
"""How far sums of float32 numbers may be from one another, relative to their largest term."""


@dataclass
class Examined:
    """What was counted on the way, for the table in the docs."""

    case: Case
    session: Session
    counts: Counter[str] = field(default_factory=Counter)

    def all(self, by_the_doctor: bool) -> None:
        """Everything that holds for a case; the doctor takes as long as all others together."""
        expected = plain.run(self.case)
        report = self.backward(expected)
        assert comparable(self.looked_at("trace")) == comparable(report)
        self.explain(expected)
        self.check()
        self.memory()
        if by_the_doctor:
            self.doctor(expected)
        self.counts["cases"] += 1
        self.counts["nodes"] += len(expected.nodes)
        self.counts["edges"] += len(expected.edges)

    # ------------------------------------------------------------------ the commands

    def looked_at(self, command: str, *options: str, status: int = 0) -> Report:
        """The answer of a command, saved, read again, and shown again by the command itself."""
        session, name = self.session, "answer.json"
        (session.folder / name).unlink(missing_ok=True)
        done = session.cli(command, "-o", name, *options, PROGRAM, "--", *self.case.arguments)
        assert done.status <= status, done
        assert "Traceback" not in done.err, done.err
        report = storage.load(session.folder / name)
        check_invariants(report)
        assert storage.decode(storage.encode(report)) == report
        again = session.cli("show" if command in ("trace", "backward") else command, name)
        assert (again.status, again.err) == (done.status, ""), again
        assert again.out
        return report

    def backward(self, expected: Plain) -> Report:
        """Nodes and edges are those of a bare walk, gradients those of torch."""
        report = self.looked_at("backward", "--run-on", "--values")
        same_grads(expected)
        pairs = paired(report, expected)
        assert len(report.graph.nodes) == len(expected.nodes)
        assert len(report.graph.edges) == len(expected.edges)
        (passed,) = report.passes
        for node, live in pairs.items():
            given = expected.upstream.get(live, ())
            for output in range(len(report.graph.nodes[node].outputs)):
                wanted = given[output] if output < len(given) else None
                same_gradient(passed.at(node, output), wanted, live in expected.upstream)
        for number, edge in enumerate(report.graph.edges):
            sent = expected.sent.get(pairs[edge.source])
            wanted = None if sent is None else sent[edge.slot]
            same_gradient(passed.on_edge(number), wanted, sent is not None)
        return report

    def explain(self, expected: Plain) -> None:
        """Its numbers add up to the gradients of torch."""
        report = self.looked_at("explain")
        told = report.explanation
        assert told is not None
        pairs = paired(report, expected)
        for ways in told.ways:
            node = report.graph.leaves[ways.leaf].node
            wanted = expected.upstream.get(pairs[node], (None,))[0]
            if wanted is not None:
                slack = partial(plain.rounding, self.case)
                self.counts["ways"] += along_paths(ways, wanted, slack)
                self.counts["weights"] += weighted(told, ways.leaf, wanted, slack)
        slack = partial(plain.rounding, self.case)
        self.counts["steps"] += sum(
            stepped(report, step.node, pairs, expected, slack) for step in told.steps
        )

    def check(self) -> Checks:
        """No derivative is called wrong, but those that torch itself gets wrong."""
        is_known = self.case.name in WRONG
        checks = self.looked_at("check", status=int(is_known)).checks
        assert checks is not None
        assert is_known or not checks.is_wrong, checks
        for one in checks.calls:
            self.counts[f"calls {one.verdict}"] += 1
        for leaf in checks.leaves:
            self.counts[f"leaves {leaf.verdict}"] += 1
        return checks

    def memory(self) -> None:
        """The bytes are those that saved-tensor hooks see."""
        memory = self.looked_at("memory").memory
        assert memory is not None
        if not memory.hidden:
            counted = memory.total("activation", "parameter", "buffer", "input")
            assert counted == plain.bytes_kept(self.case)

    def doctor(self, expected: Plain) -> None:
        """It sees the call, and leaves ``.grad`` as it is."""
        report = self.looked_at("doctor", status=1)
        same_grads(expected)
        seen = report.observations
        assert seen is not None and seen.watched == 1 and seen.failure is None
        assert not any("could not" in note or "not every" in note for note in report.notes)


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


def same_grads(expected: Plain) -> None:
    """The program's leaves hold what they hold without gradscope, to the last bit."""
    for leaf, wanted in zip(LATEST, expected.leaves, strict=True):
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


# ---------------------------------------------------------------- explanations


def row(amount: Amount) -> torch.Tensor | None:
    """An amount as a tensor, where its values are known."""
    values = amount.values
    return None if values is None else torch.tensor([float(v) for v in values]).double()


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """All elements in double precision."""
    return tensor.detach().double().reshape(-1)


def adds_up(parts: list[torch.Tensor], wanted: torch.Tensor, slack: Slack) -> None:
    """The parts make up the whole, but for rounding: that of the largest part, or where terms
    cancel inside the parts, as much as is asked for."""
    stacked = torch.stack(parts)
    largest = stacked.abs().nan_to_num(0, 0, 0)
    scale = float(largest.max()) if largest.numel() else 0.0
    for found, one in zip(stacked.sum(0).tolist(), flat(wanted).tolist(), strict=True):
        # Zero times infinity is NaN along a path, and may be a number in the sum that torch makes.
        if math.isfinite(found) and not close(found, one, scale):
            assert abs(found - one) <= 10 * slack(), (parts, wanted)


def along_paths(ways: Ways, wanted: torch.Tensor, slack: Slack) -> int:
    """What comes along all paths adds up to the gradient; 1 where that could be seen."""
    amounts = [path.contribution for path in ways.paths] + ([ways.rest] if ways.rest else [])
    rows = [found for one in amounts if (found := row(one)) is not None]
    if ways.why or not amounts or wanted.is_complex():
        return 0
    if len(rows) == len(amounts):
        adds_up(rows, wanted, slack)
    elif len(amounts) == 1:
        norm = float(torch.linalg.vector_norm(flat(wanted)))
        assert close(float(amounts[0].norm), norm, norm)
    else:
        return 0
    return 1


def weighted(told: Explanation, leaf: int, wanted: torch.Tensor, slack: Slack) -> int:
    """Weight times derivative adds up to the gradient; 1 where that could be seen."""
    weights = told.weights
    if weights is None or weights.why or not weights.terms or wanted.is_complex():
        return 0
    column = weights.leaves.index(leaf)
    rows = [row(term.derivatives[column]) for term in weights.terms]
    scaled = [
        float(term.weight) * found
        for term, found in zip(weights.terms, rows, strict=True)
        if found is not None
    ]
    rest = row(weights.rest[column]) if weights.rest else None
    if len(scaled) < len(rows) or (weights.rest and rest is None):
        return 0
    adds_up(scaled if rest is None else [*scaled, rest], wanted, slack)
    return 1


def jacobian(local: Local) -> torch.Tensor:
    """A local derivative as a whole matrix."""
    values = torch.tensor([float(value) for value in local.values]).double()
    return torch.diag(values) if local.diagonal else values.reshape(local.shape)


def stepped(report: Report, node: int, pairs: dict[int, int], expected: Plain, slack: Slack) -> int:
    """Upstream times local derivative is what is sent; how often that could be seen."""
    told = report.explanation
    given = expected.upstream.get(pairs[node])
    sent = expected.sent.get(pairs[node])
    if told is None or given is None or sent is None:
        return 0
    (step,) = (one for one in told.steps if one.node == node)
    seen = 0
    for edge in {local.edge for local in step.locals}:
        wanted = sent[report.graph.edges[edge].slot]
        locals_ = {local.output: local for local in step.locals if local.edge == edge}
        outputs = [output for output, one in enumerate(given) if one is not None]
        if wanted is None or wanted.is_complex() or not set(outputs) <= set(locals_):
            continue
        upstreams = [flat(one) for one in given if one is not None]
        matrices = [jacobian(locals_[output]) for output in outputs]
        if outputs:
            pairs_ = list(zip(upstreams, matrices, strict=True))
            adds_up([one @ matrix for one, matrix in pairs_], wanted, slack)
            seen += 1
    return seen
