"""What a check says of the whole program besides its leaves, as text.

Of a step the change of the loss beside the predicted one, and what each parameter has to do with
it; of cuts the slope where they are no constants, beside the one of backward, and those by which
that comes.  Must not know how it was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.model.studies import (
    CutShare,
    LeafStep,
    MovedCuts,
    MovedSlope,
    StepVerdict,
    TakenStep,
)
from gradscope.render.answers.answer import COMPARED, GraphAnswer, compared
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part
from gradscope.words import count, listed, one_line

INKS: dict[StepVerdict, str] = {
    "follows": "#2f7d4f",
    "too long": "bold #d0327a",
    "uphill": "bold #d0327a",
}

COLUMNS = (
    Column("parameter", narrowest=12, comfort=24),
    Column("g·Δ", right=True),
    Column("‖Δ‖/‖θ‖", right=True),
    Column("cos(Δ, -g)", right=True),
)

SAME, SCALED = 1e-3, 0.02
"""What the cosine of two gradients may lack of 1, and their lengths differ, without a word."""

SHORTEST = 1e-9
"""No smaller part of a step is tried."""

NOISE = 1e-12
"""A gradient that is smaller by that than the largest is 0, but for rounding."""

SENTENCES: dict[StepVerdict, str] = {
    "follows": "the step does what the gradient says",
    "falls": "the loss falls by less, and half of the step lowers it less than all of it",
    "uphill": "the step goes uphill",
    "no change": "the leaves are what they were before the step",
}


class TakenStepWriter(GraphAnswer):
    """Writes a step of the program."""

    def __init__(self, report: Report, step: TakenStep, options: Options) -> None:
        super().__init__(report, options)
        self._step = step
        self._who = listed(visible(one) for leaf in step.leaves for one in leaf.optimizers)
        self._largest = max((float(one.gradient) for one in step.leaves), default=0.0)

    def lines(self) -> Iterator[str]:
        """Everything."""
        step = self._step
        moved = [one for one in step.leaves if float(one.change)]
        if self._who or moved:
            yield from self.wrapped(f"step: {self._who or 'no optimizer was seen to make it'}")
        if step.calls and step.verdict != "no step":
            calls = count(step.calls, "more backward call")
            yield self.line(f"{calls} came before the step was over")
        yield from self.wrapped(self._gradient_used())
        yield from self.wrapped(self._verdict(), INKS.get(step.verdict, ""))
        if moved:
            yield from self._table(sorted(moved, key=lambda one: -abs(float(one.product))))
        if step.verdict != "no step":
            yield from self._unmoved()

    def _gradient_used(self) -> str:
        """How the ``.grad`` that the optimizers found differs from this gradient."""
        known = [one for one in self._step.leaves if one.used is not None]
        own = math.hypot(*(float(one.gradient) for one in known))
        used = math.hypot(*(float(one.used or 0) for one in known))
        if not 0 < own * used < math.inf:
            return ""
        cosine, ratio = sum(float(one.shared) for one in known) / (own * used), used / own
        length = f"{numbers.number(ratio)} times as long" if abs(ratio - 1) > SCALED else "as long"
        if cosine < 1 - SAME:
            said = f"cosine {numbers.number(cosine)}, {length}"
            return f".grad at the step was not the gradient of this call: {said}"
        if abs(ratio - 1) <= SCALED:
            return ""
        how = "clipped or scaled" if ratio < 1 else "scaled or added up"
        return f".grad at the step was the gradient of this call, {length} ({how})"

    def _verdict(self) -> str:
        step = self._step
        loss, predicted, was = map(numbers.number, (step.loss, step.predicted, step.actual))
        if step.verdict == "not measured":
            return f"step not measured: {visible(step.reason)}"
        if step.verdict == "no step":
            calls = count(step.calls, "more backward call")
            when = f", in {calls}" if step.calls else " before the program ended"
            said = f"no step: nothing changed the leaves of this graph in place{when}"
            others = listed(map(visible, step.others))
            return f"{said}; {others} holds none of them" if others else said
        said = SENTENCES.get(step.verdict) or f"the loss {self._too_long()}"
        if step.verdict == "no change":
            return said
        return f"loss {loss}, predicted change {predicted}, was {was}: {said}"

    def _too_long(self) -> str:
        actual = float(self._step.actual)
        does = "rises" if actual > 0 else "falls by too little"
        does = "is not a number after it" if math.isnan(actual) else does
        part = float(self._step.fraction or 0)
        if not SHORTEST < part < 1:
            return f"{does}. Even a millionth of the step does not do what the gradient says"
        times = round(1 / part)
        longer, least = (f"1/{times // 2}", f"{times // 2} to") if times > 2 else ("all", "up to")
        return (
            f"{does}. 1/{times} of the step does what the gradient says, {longer} of it does not: "
            f"on this batch it is {least} {times} times too long"
        )

    # ------------------------------------------------------------------ parameters

    def _table(self, ordered: list[LeafStep]) -> Iterator[str]:
        shown = ordered[: self.budget(len(ordered))]
        yield from self.table(COLUMNS, map(self._row, shown))
        yield from self.more(len(ordered) - len(shown), "parameter")

    def _row(self, one: LeafStep) -> list[Cell]:
        product, change, size = float(one.product), float(one.change), float(one.size)
        gradient = float(one.gradient)
        is_known = gradient > NOISE * self._largest and 0 < change * gradient < math.inf
        texts = (
            numbers.number(product),
            numbers.number(change / size) if size else "θ was 0",
            f"{-product / (change * gradient):.2f}" if is_known else "",
        )
        return [Part(self.leaf(one.leaf), "bold"), *texts]

    def _unmoved(self) -> Iterator[str]:
        reasons: dict[str, list[str]] = {}
        for one in self._step.leaves:
            if not float(one.change):
                reasons.setdefault(self._why_unmoved(one), []).append(self.leaf(one.leaf))
        for reason, names in reasons.items():
            yield from self.wrapped(f"did not move: {listed(names)}{reason}", "dim")

    def _why_unmoved(self, one: LeafStep) -> str:
        if not one.optimizers:
            return ": held by no optimizer that stepped" if self._who else ""
        if one.used is None:
            return ": no .grad at the step"
        return f": {listed(map(visible, one.optimizers))}" if one.used else ": .grad was 0"


CUTS = (
    Column("cut", narrowest=12, comfort=24, essential=True),
    Column("why", drop=2),
    Column("share", right=True),
    Column("leaves before it", drop=1, narrowest=10, comfort=16),
    Column("source"),
)

LEAVES = (Column("through cuts", narrowest=12, comfort=24), *COMPARED)

NAMED = 2
"""Leaves that are named in a row."""

MEANT = (
    "through cuts: what was computed without history moves with the leaves, as far as it could be "
    "followed. Backward holds it fixed, as is often meant: no derivative is wrong by it"
)


class MovedCutsWriter(GraphAnswer):
    """Writes them."""

    def __init__(self, report: Report, cuts: MovedCuts, options: Options) -> None:
        super().__init__(report, options)
        self._cuts = cuts

    def lines(self) -> Iterator[str]:
        """Everything."""
        if self._cuts.together is not None:
            yield from self._slopes(self._cuts.together)
            shares = sorted(self._cuts.shares, key=lambda one: -abs(float(one.share)))
            yield from self.table(CUTS, (row for one in shares for row in self._rows(one)))
            yield from self.wrapped(MEANT, "dim")
        if self._cuts.reason:
            yield from self.wrapped(f"cuts: {visible(self._cuts.reason)}", "dim")

    def _slopes(self, together: MovedSlope) -> Iterator[str]:
        each = sorted(self._cuts.leaves, key=lambda one: -abs(float(one.error)))
        shown = each[: self.budget(len(each))]
        # Of one leaf alone both are the same.
        first = [] if self._cuts.moved == len(each) == 1 else [together]
        yield from self.table(LEAVES, map(self._slope, (*first, *shown)))
        yield from self.more(len(each) - len(shown), "leaf")

    def _slope(self, one: MovedSlope) -> list[Cell]:
        name = visible(one.name) or f"all {count(self._cuts.moved, 'leaf')} together"
        is_seen = one.leaf is not None or not one.name
        return [name, *compared(one.analytic if is_seen else None, one.numeric, one.error)]

    def _rows(self, one: CutShare) -> Iterator[list[Cell]]:
        """A row for each cut; the share with the first of those that were let go together."""
        share, names = numbers.number(one.share), listed(map(visible, one.leaves), NAMED)
        for cut in one.cuts:
            expression = Part(visible(one_line(cut.expression)), "cyan")
            file = self.files.get(cut.file, cut.file)
            source = Part(f"{visible(file)}:{cut.line}" if file else "", "dim")
            yield [expression, visible(cut.why), share, Part(names, "bold"), source]
            share, names = "together", ""


def matter(cuts: MovedCuts) -> str:
    """``2 cuts matter``."""
    many = len({cut for one in cuts.shares for cut in one.cuts})
    return f"{count(many, 'cut')} {'matters' if many == 1 else 'matter'}"
