"""The rule about custom Functions whose backward is not the derivative of their forward."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._facts import Facts, FindingDraft, short
from gradscope.model.checks import MEANT
from gradscope.model.observations import Mismatch

TOLERANCE = 1e-2
"""Relative difference from the finite differences, far above their own error in float64."""


def wrong_derivative(facts: Facts) -> Iterable[FindingDraft]:
    """GS601: a custom backward that disagrees with finite differences."""
    told: set[str] = set()
    for mismatch in facts.seen.mismatches:
        op = facts.op(mismatch.node)
        if op in told or not _differs(mismatch):
            continue
        told.add(op)
        yield _finding(facts, mismatch, op)


def _differs(mismatch: Mismatch) -> bool:
    analytic, numeric = float(mismatch.analytic), float(mismatch.numeric)
    # Flat forward, other backward: a straight-through estimator, and meant.
    if numeric == 0:
        return False
    return not abs(analytic - numeric) <= TOLERANCE * max(abs(analytic), abs(numeric))


def _finding(facts: Facts, mismatch: Mismatch, op: str) -> FindingDraft:
    name = op.removesuffix("Backward")
    meant = bool(MEANT.search(name))
    element = f" at element {list(mismatch.element)}" if mismatch.element else ""
    return facts.finding(
        "information" if meant else "warning",
        f"backward of {name} is not the derivative of its forward.",
        mismatch.node,
        subject=name,
        evidence=(
            f"input {mismatch.input}{element}: backward says {short(mismatch.analytic)}, "
            f"finite differences say {short(mismatch.numeric)}",
        ),
        why="Its name says that this is meant."
        if meant
        else "Differences of forward itself, in float64, give another number than its backward.",
        remedy="Nothing, if it is meant."
        if meant
        else "Derive backward again (product rule, transposes, the factor `grad` that comes from "
        "above), and keep `torch.autograd.gradcheck` in your tests.",
    )
