"""What a step did, as text: the change of the loss beside the predicted one, and what each
parameter has to do with it.

Must not know how it was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Graph
from gradscope.model.studies import LeafStep, StepGroup, StepVerdict, TakenStep
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, Writer
from gradscope.words import count, listed, option

INKS: dict[StepVerdict, str] = {
    "follows": "#2f7d4f",
    "too long": "bold #d0327a",
    "uphill": "bold #d0327a",
}

COLUMNS = (
    Column("step", narrowest=12, comfort=24),
    Column("g·Δ", right=True),
    Column("‖Δ‖/‖θ‖", right=True),
    Column("cos(Δ, -g)", right=True),
    Column("", drop=1),
)

SAME = 1e-3
"""Below 1 by so much is the cosine of two gradients that are called the same."""

SCALED = 0.02
"""The lengths of two gradients differ by more than that where it is worth a word."""

AGAINST = -1e-3
"""A cosine below it is told of."""


class StepWriter(Writer):
    """Writes a step of the program."""

    def __init__(self, step: TakenStep, graph: Graph, options: Options) -> None:
        super().__init__(options)
        self._step = step
        self._graph = graph
        self._moved = [one for one in step.leaves if float(one.change)]

    def lines(self) -> Iterator[str]:
        """Everything."""
        step = self._step
        for sentence in (*self._who(), *self._gradient_used()):
            yield from self.wrapped(sentence)
        yield from self.wrapped(self._verdict(), INKS.get(step.verdict, ""))
        if self._moved:
            yield from self._table()
        for sentence in self._unmoved():
            yield from self.wrapped(sentence, "dim")

    # ------------------------------------------------------------------ sentences

    def _who(self) -> Iterator[str]:
        for group in self._step.groups:
            settings = ", ".join(f"{name} {numbers.number(one)}" for name, one in group.settings)
            times = f", {group.steps} times" if group.steps > 1 else ""
            at = f" at {visible(group.at)}" if group.at else ""
            yield f"step: {visible(group.optimizer)} ({settings}){at}{times}"
        if self._moved and not self._step.groups:
            yield "step: by the program itself, no optimizer stepped"
        if self._step.calls:
            calls = count(self._step.calls, "more backward call")
            yield f"before it came {calls} than the one above"

    def _gradient_used(self) -> Iterator[str]:
        """How the ``.grad`` that the optimizers found differs from this gradient."""
        seen = [one for one in self._step.leaves if one.group is not None]
        seen = [one for one in seen if not self._group(one).has_closure]
        known = [one for one in seen if one.used is not None]
        own = math.hypot(*(float(one.gradient) for one in known))
        used = math.hypot(*(float(one.used or 0) for one in known))
        if seen and not used:
            yield f".grad was {'0' if known else 'empty'} when the optimizer stepped"
            return
        if not own * used:
            return
        cosine = sum(float(one.shared) for one in known) / (own * used)
        ratio = used / own
        more = "; it held a gradient before that call" if self._step.filled else ""
        if cosine < 1 - SAME:
            length = numbers.number(ratio)
            yield (
                f".grad at the step was not the gradient of this call: cosine "
                f"{cosine:.2f}, {length} times as long{more}"
            )
        elif abs(ratio - 1) > SCALED:
            yield (
                f".grad at the step was {numbers.number(ratio)} times the gradient of this call "
                f"({'clipped or scaled' if ratio < 1 else 'scaled or added up'}){more}"
            )

    def _verdict(self) -> str:
        step = self._step
        predicted, actual = numbers.number(step.predicted), numbers.number(step.actual)
        both = f"predicted {predicted}, was {actual}"
        if step.verdict == "follows":
            ratio = float(step.actual) / float(step.predicted)
            more = f", and more: {numbers.number(ratio)} times" if ratio > 2 else ""
            does = f"the step does what the gradient says{more}"
            return f"loss {numbers.number(step.loss)}, {both}: {does}"
        if step.verdict == "too long":
            does = "rises" if not float(step.actual) <= 0 else "falls only"
            return (
                f"the loss {does} by {actual.removeprefix('-')}, where the gradient predicts "
                f"{predicted}: {self._too_long()}"
            )
        if step.verdict == "uphill":
            return f"the step goes uphill: g·Δ = {predicted}; the loss changed by {actual}"
        if step.verdict == "across":
            return f"the step is at a right angle to the gradient; the loss changed by {actual}"
        if step.verdict == "no change":
            return "the step changed nothing"
        if step.verdict == "no step":
            return self._no_step()
        return f"step not measured: {visible(step.reason)}"

    def _too_long(self) -> str:
        part = self._step.fraction
        if part is None:
            return "also at a millionth of the step it does not fall as predicted"
        times = round(1 / float(part))
        longer = f"1/{times // 2} of it does not" if times > 2 else "all of it does not"
        excess = f"{times // 2} to {times} times" if times > 2 else "up to 2 times"
        return (
            f"1/{times} of the step does what the gradient says, {longer}: on this batch it is "
            f"{excess} too long"
        )

    def _no_step(self) -> str:
        text = "no step: the program ended, and nothing had changed the leaves of this graph"
        if self._step.bystanders:
            who = listed(map(visible, self._step.bystanders))
            return f"{text}; {who} stepped, and holds none of them"
        return f"{text} in place; {option('call', 'N')} looks at another backward call"

    # ------------------------------------------------------------------ parameters

    def _table(self) -> Iterator[str]:
        ordered = sorted(self._moved, key=lambda one: -abs(float(one.product)))
        most = len(ordered) if self.options.folding.all else self.options.lines
        yield from self.table(COLUMNS, [self._row(one) for one in ordered[:most]])
        if len(ordered) > most:
            yield self.line(f"… {len(ordered) - most:,} more parameters: {option('all')}")

    def _row(self, one: LeafStep) -> list[Cell]:
        cosine = _cosine(one)
        size = float(one.size)
        length = numbers.number(float(one.change) / size) if size else ""
        note = "" if cosine is None or cosine > AGAINST else "against its gradient"
        note = "its gradient is 0" if not float(one.gradient) else note
        return [
            (Part(self._name(one), "bold"),),
            (Part(numbers.number(one.product)),),
            (Part(length),),
            (Part("" if cosine is None else f"{cosine:.2f}"),),
            (Part(note, "dim"),),
        ]

    def _unmoved(self) -> Iterator[str]:
        reasons: dict[str, list[str]] = {}
        if self._step.groups:
            for one in self._step.leaves:
                if not float(one.change):
                    reasons.setdefault(self._why_unmoved(one), []).append(self._name(one))
        for reason, names in reasons.items():
            yield f"did not move: {listed(names)}{reason and ': '}{reason}"

    def _why_unmoved(self, one: LeafStep) -> str:
        if one.group is None:
            return "held by no optimizer that stepped"
        group = self._group(one)
        if not dict(group.settings).get("lr", 1):
            return "lr 0"
        if one.used is None and not group.has_closure:
            return "no .grad at the step"
        return "" if one.used or group.has_closure else ".grad was 0"

    def _group(self, one: LeafStep) -> StepGroup:
        return self._step.groups[one.group or 0]

    def _name(self, one: LeafStep) -> str:
        leaf = self._graph.leaves[one.leaf]
        return visible(leaf.names[0]) if leaf.names else f"#{leaf.node}"


def _cosine(one: LeafStep) -> float | None:
    size = float(one.change) * float(one.gradient)
    return -float(one.product) / size if 0 < size < math.inf else None
