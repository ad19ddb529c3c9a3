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
    Column("parameter", narrowest=12, comfort=24),
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


NOISE = 1e-12
"""A gradient that is smaller by that than the largest is 0, but for rounding."""

MOST_GROUPS = 4
"""Groups of parameters that are told of."""


class TakenStepWriter(Writer):
    """Writes a step of the program."""

    def __init__(self, step: TakenStep, graph: Graph, options: Options) -> None:
        super().__init__(options)
        self._step = step
        self._graph = graph
        self._moved = [one for one in step.leaves if float(one.change)]
        self._largest = max((float(one.gradient) for one in step.leaves), default=0.0)

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
        groups = self._step.groups
        for group in groups[:MOST_GROUPS]:
            settings = ", ".join(
                name if name == "maximize" else f"{name} {numbers.number(one)}"
                for name, one in group.settings
            )
            at = f" at {visible(group.at)}" if group.at else ""
            yield f"step: {visible(group.optimizer)} ({settings}){at}"
        if len(groups) > MOST_GROUPS:
            yield f"… {len(groups) - MOST_GROUPS:,} more groups of parameters"
        if self._moved and not groups:
            yield "step: by the program itself, no optimizer stepped"
        if self._step.calls and self._step.verdict != "no step":
            came = count(self._step.calls, "more backward call")
            yield f"{came} came before the step was over"

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
                f"{numbers.number(cosine)}, {length} times as long{more}"
            )
        elif abs(ratio - 1) > SCALED:
            yield (
                f".grad at the step was {numbers.number(ratio)} times the gradient of this call "
                f"({'clipped or scaled' if ratio < 1 else 'scaled or added up'}){more}"
            )

    def _verdict(self) -> str:
        step = self._step
        if step.verdict == "not measured":
            return f"step not measured: {visible(step.reason)}"
        if step.verdict == "no change":
            return "the leaves are what they were before the step"
        if step.verdict == "no step":
            return self._no_step()
        loss, predicted, was = map(numbers.number, (step.loss, step.predicted, step.actual))
        return f"loss {loss}, predicted change {predicted}, was {was}: {self._judgement()}"

    def _judgement(self) -> str:
        step = self._step
        if step.verdict == "too long":
            does = "rises" if not float(step.actual) <= 0 else "falls by too little"
            return f"the loss {does}. {self._too_long()}"
        if step.verdict == "follows":
            ratio = float(step.actual) / float(step.predicted)
            more = f", the loss falls {numbers.number(ratio)} times as much" if ratio > 2 else ""
            return f"the step does what the gradient says{more}"
        return {
            "falls": "the loss falls by less, and half of the step lowers it less than all of it",
            "uphill": "the step goes uphill",
        }.get(step.verdict, "the step is at a right angle to the gradient")

    def _too_long(self) -> str:
        part = self._step.fraction
        if part is None:
            return "Even a millionth of the step does not do what the gradient says"
        times = round(1 / float(part))
        longer = f"1/{times // 2} of it does not" if times > 2 else "all of it does not"
        excess = f"{times // 2} to {times} times" if times > 2 else "up to 2 times"
        return (
            f"1/{times} of the step does what the gradient says, {longer}: on this batch it is "
            f"{excess} too long"
        )

    def _no_step(self) -> str:
        calls = count(self._step.calls, "more backward call")
        when = f"in {calls}" if self._step.calls else "before the program ended"
        text = f"no step: nothing changed the leaves of this graph {when}"
        if self._step.bystanders:
            who = listed(map(visible, self._step.bystanders))
            return f"{text}. {who} stepped, and holds none of them"
        return f"{text}. Only a change in place is seen: optimizer.step(), or w -= … under no_grad"

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
        length = numbers.number(float(one.change) / size) if size else "θ was 0"
        note = "" if cosine is None or cosine > AGAINST else "against its gradient"
        if float(one.gradient) <= NOISE * self._largest:
            cosine, note = None, "no gradient"
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
        if group.has_closure:
            return ""
        return "though .grad was not 0" if one.used else ".grad was 0"

    def _group(self, one: LeafStep) -> StepGroup:
        return self._step.groups[one.group or 0]

    def _name(self, one: LeafStep) -> str:
        leaf = self._graph.leaves[one.leaf]
        return visible(leaf.names[0]) if leaf.names else f"#{leaf.node}"


def _cosine(one: LeafStep) -> float | None:
    size = float(one.change) * float(one.gradient)
    return -float(one.product) / size if 0 < size < math.inf else None
