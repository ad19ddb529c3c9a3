"""What a check found, as text: each call and the whole program, the analytic number beside the
numeric one, wrong ones first, counted at the end.

Must not know how anything is compared."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.model.studies import CallCheck, GradientComparison, LeafCheck, Verdict
from gradscope.render.answers.answer import COMPARED, GraphAnswer, compared, held
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part
from gradscope.simplify.partition import label_of
from gradscope.words import count, either, listed, one_line, option

INKS: dict[Verdict, str] = {
    "wrong": "bold #d0327a",
    "rounding": "bold #b45309",
    "unresolved": "#b45309",
    "kink": "#b45309",
    "meant": "#0b5370",
    "random": "dim",
    "not checked": "dim",
    "right": "#2f7d4f",
}
"""Of each verdict, the worst first."""

LEGEND: dict[Verdict, str] = {
    "rounding": "right in float64; what differs comes with the program's own precision",
    "unresolved": "rounding hides the differences, two step sizes do not agree, or only the whole "
    "program can be compared",
    "kink": "no derivative to compare with: the slopes to the two sides differ, or one of the "
    "numbers is not finite here",
    "meant": "backward differs from the derivative, on purpose as it seems",
    "random": "forward gives another result each time it is run",
}

DETAILED: tuple[Verdict, ...] = ("wrong", "kink", "unresolved", "meant")

CALLS = (
    Column(""),
    Column("node", narrowest=10, comfort=14),
    Column("expression", drop=3, narrowest=12, comfort=20, essential=True),
    Column("input", narrowest=4, comfort=10),
    Column("at", drop=2),
    *COMPARED,
    Column("source", drop=1),
)

LEAVES = (Column(""), Column("whole program", narrowest=12, comfort=24), *COMPARED)


class _CheckWriter(GraphAnswer):
    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(report, options)
        self.checks = held(report.checks, either("gradscope check", "gradscope.check(root)"))

    def lines(self) -> Iterator[str]:
        """Everything."""
        target = visible(self.report.meta.target)
        yield from self.wrapped(" · ".join(filter(None, [target, self.checks.counted])), "bold")
        for note in self.report.notes:
            yield from self.wrapped(visible(note), "dim")
        if self.checks.calls:
            yield from self._calls()
        if self.checks.leaves or self.checks.reason:
            yield ""
            yield from self._leaves()
        yield from self._remarks()

    # ------------------------------------------------------------------ calls

    def _calls(self) -> Iterator[str]:
        ordered = sorted(self.checks.calls, key=lambda one: list(INKS).index(one.verdict))
        rows = [(call, row) for call in ordered for row in self._rows(call)]
        bad = sum(call.verdict == "wrong" for call, _ in rows)
        shown = rows[: max(self.budget(len(rows)), bad)]
        lines = iter(self.table(CALLS, [row for _, row in shown]))
        yield next(lines)
        for position, (call, _) in enumerate(shown):
            yield next(lines)
            is_last = position + 1 == len(shown) or shown[position + 1][0] is not call
            if is_last:
                yield from self._details(call)
        yield from self.more(len(rows) - len(shown))

    def _rows(self, call: CallCheck) -> Iterator[list[Cell]]:
        """A row for every input that is wrong; else one for the call."""
        wrong = [one for one in call.inputs if one.verdict == "wrong"]
        worst = max(call.inputs, key=_error, default=None)
        for comparison in wrong or (worst,):
            yield [
                Part(call.verdict, INKS[call.verdict]),
                Part(self._node(call), "bold"),
                Part(self._expression(call), "cyan"),
                *self._compared(comparison),
                Part(self.source(call.nodes[0]), "dim"),
            ]

    def _details(self, call: CallCheck) -> Iterator[str]:
        """What a narrow table cannot hold, where it matters; and the reason."""
        if call.verdict in DETAILED:
            source = self.source(call.nodes[0])
            place = f"at {source}: " if source else ""
            yield from self.wrapped(place + self._expression(call), "dim", indent=4)
            for one in call.inputs:
                if one.verdict == call.verdict and one.element:
                    name = visible(one_line(one.name)) or f"input {one.input}"
                    at = numbers.shape(one.element)
                    differs = "differs most at" if call.verdict == "wrong" else "at"
                    yield from self.wrapped(f"{differs} element {at} of {name}", "dim", indent=4)
        if call.reason:
            yield from self.wrapped(visible(call.reason), "dim", indent=4)

    def _compared(self, one: GradientComparison | None) -> list[Cell]:
        if one is None:
            return [""] * 5
        name = visible(one_line(one.name)) or f"input {one.input}"
        at = "all" if one.element is None else numbers.shape(one.element) if one.element else ""
        return [name, Part(at, "dim"), *compared(one.analytic, one.numeric, one.error)]

    def _node(self, call: CallCheck) -> str:
        node = self.graph.nodes[call.nodes[0]]
        more = f" +{len(call.nodes) - 1}" if len(call.nodes) > 1 else ""
        twice = " twice" if call.order == 2 else ""
        return f"#{node.id} {visible(node.short_op)}{twice}{more}"

    def _expression(self, call: CallCheck) -> str:
        return visible(one_line(label_of(self.graph, self.graph.nodes[call.nodes[0]])))

    # ------------------------------------------------------------------ leaves

    def _leaves(self) -> Iterator[str]:
        if self.checks.leaves:
            ordered = sorted(self.checks.leaves, key=lambda one: list(INKS).index(one.verdict))
            shown = ordered[: self.budget(len(ordered))]
            rows: list[list[Cell]] = [
                [
                    Part(one.verdict, INKS[one.verdict]),
                    self._names(one),
                    *compared(one.analytic, one.numeric, one.error),
                ]
                for one in shown
            ]
            yield from self.table(LEAVES, rows)
            yield from self.more(len(ordered) - len(shown), "leaf")
            reasons: dict[str, list[str]] = {}
            for one in shown:
                reasons.setdefault(one.reason, []).append(self._names(one))
            for reason, names in reasons.items():
                if reason:
                    text = f"{listed(names)}: {visible(reason)}"
                    yield from self.wrapped(text, "dim", indent=4)
        if self.checks.reason:
            lead = "" if self.checks.leaves else "whole program not checked: "
            yield from self.wrapped(lead + visible(self.checks.reason), "dim")

    def _names(self, check: LeafCheck) -> str:
        if len(check.leaves) > 1:
            return f"all {len(check.leaves):,} leaves together"
        return self.leaf(check.leaves[0])

    # ------------------------------------------------------------------ around them

    def _remarks(self) -> Iterator[str]:
        checks = self.checks
        met = {one.verdict for one in checks.calls} | {one.verdict for one in checks.leaves}
        met |= {one.verdict for call in checks.calls for one in call.inputs}
        remarks = [f"{verdict}: {text}" for verdict, text in LEGEND.items() if verdict in met]
        if any(call.order == 2 for call in checks.calls):
            remarks.append("twice: double backward, beside differences of backward")
        if checks.repeats:
            many = count(checks.repeats, "more call")
            remarks.append(f"{many} at lines that were checked once: {option('every-call')}")
        if checks.covered:
            many = count(checks.covered, "node")
            remarks.append(f"{many} made by a backward pass: only the whole program covers them")
        if checks.leaves and self.graph.walls:
            remarks.append(f"held fixed, as backward does: {listed(dict.fromkeys(self._cuts()))}")
        if remarks:
            yield ""
        for remark in remarks:
            yield from self.wrapped(remark, "dim")

    def _cuts(self) -> Iterator[str]:
        """``what data cuts at train.py:34``, or what was made there without history."""
        for wall in self.graph.walls:
            cuts = "is made with grad off" if wall.is_by_mode else f"{visible(wall.function)} cuts"
            place = self.place(wall.origin)
            yield f"what {cuts}{f' at {place}' if place else ''}"


render = _CheckWriter.render


def _error(one: GradientComparison) -> float:
    error = 0.0 if one.error is None else float(one.error)
    return math.inf if math.isnan(error) else error
