"""One case through every command, each answer beside what plain torch says."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from gradscope.model.explanation import End, Explanation
from gradscope.model.report import Report
from gradscope.model.studies import Checks
from tests import beside
from tests.bare import Plain
from tests.beside import close, comparable, jacobian, paired, row
from tests.looking import Session
from tests.operators import plain
from tests.operators.database import LATEST, Case

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


class Examined(beside.Examined):
    """One case."""

    def __init__(self, case: Case, session: Session) -> None:
        super().__init__(session, PROGRAM, "--", *case.arguments)
        self.case = case

    def all(self, by_the_doctor: bool) -> None:
        """Everything that holds for a case; the doctor takes as long as all others together."""
        expected = plain.run(self.case)
        report = self.backward(expected, lambda: LATEST)
        assert comparable(self.looked_at("trace")) == comparable(report)
        self.explain(expected)
        self.checked()
        self.memory(lambda: plain.bytes_kept(self.case))
        if by_the_doctor:
            self.doctor(expected, lambda: LATEST)
        self.counts["cases"] += 1

    def checked(self) -> Checks:
        """No derivative is called wrong, but those that torch itself gets wrong."""
        return self.check(self.case.name in WRONG)

    def explain(self, expected: Plain) -> None:
        """Its numbers add up to the gradients of torch."""
        report = self.looked_at("explain")
        told = report.explanation
        assert told is not None
        pairs = paired(report, expected)
        for column, end in enumerate(told.ends):
            wanted = expected.upstream.get(pairs[end.node], (None,))[0]
            if wanted is not None:
                slack = partial(plain.rounding, self.case)
                self.counts["ways"] += along_paths(end, wanted, slack)
                self.counts["weights"] += weighted(told, column, wanted, slack)
        slack = partial(plain.rounding, self.case)
        self.counts["steps"] += sum(
            stepped(report, step.node, pairs, expected, slack) for step in told.steps
        )


# ---------------------------------------------------------------- explanations


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


def along_paths(end: End, wanted: torch.Tensor, slack: Slack) -> int:
    """What comes along all paths adds up to the gradient; 1 where that could be seen."""
    amounts = [path.contribution for path in end.paths] + ([end.rest] if end.rest else [])
    rows = [found for one in amounts if (found := row(one)) is not None]
    if end.why or not amounts or wanted.is_complex():
        return 0
    if len(rows) == len(amounts):
        adds_up(rows, wanted, slack)
    elif len(amounts) == 1:
        norm = float(torch.linalg.vector_norm(flat(wanted)))
        assert close(float(amounts[0].norm or 0), norm, norm)
    else:
        return 0
    return 1


def weighted(told: Explanation, column: int, wanted: torch.Tensor, slack: Slack) -> int:
    """Weight times derivative adds up to the gradient; 1 where that could be seen."""
    weights = told.weights
    if weights is None or weights.why or not weights.terms or wanted.is_complex():
        return 0
    rows = [row(term.derivatives[column]) for term in weights.terms]
    scaled = [
        float(term.weight) * found
        for term, found in zip(weights.terms, rows, strict=True)
        if found is not None
    ]
    if len(scaled) < len(rows):
        return 0
    adds_up(scaled, wanted, slack)
    return 1


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
