"""The steps of the chain rule, in words and numbers: each in full, or all as rows of a table.

Must not know of paths or weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.explanation import ChainStep, Local
from gradscope.model.report import GradientInfo
from gradscope.render.answers.explained import (
    BAD,
    LABEL,
    MOST_NUMBERS,
    Explained,
    agree,
    total,
)
from gradscope.render.answers.explained_wording import Wording
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, parts
from gradscope.render.words.text import cells
from gradscope.simplify.gradients import combine

LEFT = 40
"""Cells that three columns of numbers leave to the step and what it computes."""

SILENT = ("none", "not reached")
"""States of a gradient that brings nothing."""

COLUMNS = (
    Column("step", narrowest=16, comfort=24),
    Column("expression", drop=4, narrowest=10, comfort=20, essential=True),
    Column("upstream", right=True),
    Column("× local", right=True, drop=3),
    Column("to"),
    Column("sent on", right=True),
    Column("ratio", right=True, drop=1),
    Column("source", drop=2),
)


class StepWriter:
    """One step: what was computed, the gradient that arrived, and what each operand is sent."""

    def __init__(self, explained: Explained, record: ChainStep) -> None:
        self.explained = explained
        self.record = record
        self.node = explained.graph.nodes[record.node]
        self.wording = Wording(explained, record)
        self.edges = [edge for edge in explained.leaving[record.node] if edge in explained.leading]
        roots = {root.node for root in explained.graph.roots}
        sign = explained.glyphs.root if record.node in roots else explained.glyphs.op
        self.title = f"{sign} #{record.node} {explained.title(self.node)}"
        self.expression = explained.expression(self.node)
        self.place = explained.scene.place(self.node.line)

    @cached_property
    def received(self) -> dict[int, GradientInfo]:
        """The upstream gradients that arrived, by output."""
        outputs = range(len(self.node.outputs))
        found = {output: self.explained.upstream(self.node.id, output) for output in outputs}
        return {k: info for k, info in found.items() if info and info.state not in SILENT}

    @property
    def upstream(self) -> str:
        """The same as text."""
        shapes = {output: self.explained.shape(self.node.id, output) for output in self.received}
        return ", ".join(self.explained.gradient(x, shapes[k]) for k, x in self.received.items())

    def arrivals(self, output: int) -> list[tuple[GradientInfo, str]]:
        """The gradients that were added up for an output, and where each is from."""
        explained, here, backward = self.explained, self.node.id, self.explained.backward
        if backward is None:
            return []
        roots = zip(explained.graph.roots, backward.seeds, strict=True)
        at = [seed for root, seed in roots if (root.node, root.output) == (here, output)]
        found = [(backward.gradients[seed], "given") for seed in at]
        for edge in explained.arriving[here]:
            if explained.edge(edge).output == output:
                found.append((backward.on_edge(edge), f"from #{explained.edge(edge).source}"))
        return [one for one in found if one[0].state not in SILENT]

    def sent(self, edge: int) -> str:
        """The gradient along an edge; "" where there is none."""
        info, place = self.explained.on_edge(edge), self.explained.edge(edge)
        shape = self.explained.shape(place.target, place.output)
        return self.explained.gradient(info, shape) if info else ""

    # ------------------------------------------------------------------ in full

    def lines(self) -> Iterator[str]:
        """All lines of the step."""
        explained = self.explained
        yield explained.headline(f"{self.title}  {self.expression}".rstrip(), self.place)
        yield from explained.entry("value", self._value())
        for output in self.received:
            label = "upstream" if len(self.node.outputs) == 1 else f"upstream{output}"
            yield from explained.entry(label, self._arrived(output))
        for edge in self.edges:
            yield from self._operand(edge)
        if self.record.listing is not None:
            listing = self.record.listing
            yield from explained.entry("backward", f"{visible(listing.file)}:{listing.line}", "dim")
            for text in listing.lines:
                yield explained.fitted(" " * 15 + explained.glyphs.text(visible(text)), "cyan")
        elif self.wording.rule.why:
            yield from explained.entry("formula", visible(self.wording.rule.why), "dim")
        if self.record.why:
            text = f"derivatives cannot be computed here, because {visible(self.record.why)}"
            yield from explained.entry("local", text, BAD)

    def _value(self) -> str:
        outputs = range(len(self.node.outputs))
        results = [self.explained.value(self.node.id, output) for output in outputs]
        if not all(results):
            return ""
        taken = self.wording.taken() if len(results) == 1 else ""
        return f"{taken} = {results[0]}" if taken else ", ".join(results)

    def _arrived(self, output: int) -> str:
        explained = self.explained
        shape = explained.shape(self.node.id, output)
        arrivals = self.arrivals(output)
        text = explained.gradient(self.received[output], shape)
        origin = ", ".join(name for _, name in arrivals)
        added = " + ".join(explained.gradient(part, shape) for part, _ in arrivals)
        hook = explained.backward.hook_on(self.node.id) if explained.backward is not None else None
        if hook is not None:
            place = f" ({hook})" if hook else ""
            return f"{added}  ({origin}), which a hook of the program{place} replaced by {text}"
        if len(arrivals) > 1:
            text = f"{added} = {text}"
        return f"{text}  ({origin})" if origin else text

    def _operand(self, edge: int) -> Iterator[str]:
        """An operand, the derivative by it, and the product."""
        to = self.explained.to(edge)
        label = f"→ {to}" if cells(to) < LABEL - 2 else "→ leaf"
        named = self.wording.named(edge)
        said = (
            named
            if label == "→ leaf" or named != self.explained.name(self.explained.edge(edge).target)
            else ""
        )
        words = self.wording
        told = (said, words.derivative(edge), words.formula(edge), self._product(edge))
        yield from self.explained.beside(label, *(told if any(told) else ["no gradient goes here"]))

    def _product(self, edge: int) -> str:
        """``upstream × local = sent``, as far as these are known and small; without a gradient the
        local Jacobian, where no number says it."""
        explained, info = self.explained, self.explained.on_edge(edge)
        if info is None:
            local = None if explained.backward is not None else self.wording.local(edge)
            if local is None or local.diagonal or len(local.values) > MOST_NUMBERS:
                return ""
            return f"J = {numbers.tensor(local.values, local.shape, 'float32')}"
        if info.state == "not reached" or not self.received:
            return "" if info.state == "not reached" else "nothing arrived, so nothing is sent"
        sent = self.sent(edge)
        products = list(self._products(edge))
        rows = [multiplied(self.received[k].values or (), local) for k, local, _ in products]
        added = total(rows)
        is_known = products and len(products) == len(self.received) and info.values
        if added is None or not is_known or not all(text for *_, text in products):
            return f"{self.upstream} → {sent}"
        text = " + ".join(text for *_, text in products)
        if agree(added, info.values or (), explained.precision):
            # Where words say which elements are taken, a matrix of 0 and 1 says no more.
            taken = {float(value) for _, local, _ in products for value in local.values} <= {0, 1}
            is_said = "@" in text and taken and self.wording.derivative(edge)
            return f"{self.upstream} → {sent}" if is_said else f"{text} = {sent}"
        return f"{text} = {numbers.tensor(added, (len(added),), 'float32')}, but {sent} was sent"

    def _products(self, edge: int) -> Iterator[tuple[int, Local, str]]:
        """For each output that got a gradient its Jacobian, and the product in numbers, "" where
        these are many."""
        explained = self.explained
        for output, info in self.received.items():
            local = explained.locals.get((edge, output))
            # A gradient that was not yet reduced to its tensor's shape has more numbers.
            if local is not None and len(info.values or ()) == local.shape[0]:
                shape = explained.shape(self.node.id, output)
                yield output, local, explained.product(info, shape, [local])

    # ------------------------------------------------------------------ as rows

    def rows(self, told: set[int]) -> Iterator[list[Cell]]:
        """A row for each edge that leads to a node that is told; for all, where none does."""
        explained = self.explained
        above = [*self.received.values()]
        arrived = max((len(self.arrivals(output)) for output in self.received), default=0)
        joins = f"{explained.glyphs.sum}{arrived} " if arrived > 1 else ""
        upstream = Part(joins + self._short(self.upstream, above))
        words, place = (
            [Part(self.title, "bold"), Part(self.expression, "cyan"), upstream],
            self.place,
        )
        among = [edge for edge in self.edges if explained.edge(edge).target in told]
        leaving = among or self.edges
        for edge in leaving:
            info, local = explained.on_edge(edge), self.wording.local(edge)
            is_factor = local is not None and (local.diagonal or local.shape[0] == 1)
            text = explained.local(local) if local is not None and is_factor else ""
            factor = self._short(f"× {text}" if text else "", [])
            yield [
                *words,
                factor,
                explained.to(edge) if len(leaving) > 1 else "",
                self._short(self.sent(edge), [info] if info else []),
                "" if factor else ratio(above, info),
                Part(place, "dim"),
            ]
            words, place = [Part("")] * 3, ""

    def _short(self, text: str, instead: Sequence[GradientInfo]) -> str:
        """A text that leaves room for others like it, else the norm of all together."""
        if cells(text) <= (self.explained.options.width - LEFT) // 3:
            return text
        whole = combine([*instead])
        return f"‖{numbers.number(whole.norm)}‖" if whole and whole.norm is not None else ""


def ratio(above: Sequence[GradientInfo], sent: GradientInfo | None) -> str:
    """By how much a gradient grew, where that can be said."""
    if len(above) != 1 or sent is None or sent.norm is None or not above[0].norm:
        return ""
    grown = float(sent.norm) / float(above[0].norm)
    return f"×{grown:.3g}" if math.isfinite(grown) else ""


def multiplied(upstream: tuple[float | str, ...], local: Local) -> list[float]:
    """Upstream gradient times Jacobian: element by element, or row vector times matrix."""
    above = [float(value) for value in upstream]
    values = [float(value) for value in local.values]
    if local.diagonal:
        return [a * b for a, b in zip(above, values, strict=True)]
    rows, columns = local.shape
    return [
        sum(above[row] * values[row * columns + column] for row in range(rows))
        for column in range(columns)
    ]


def as_table(explained: Explained) -> Iterator[str]:
    """A row for each operand of each step."""
    steps = explained.answer.steps
    told = {step.node for step in steps} | {end.node for end in explained.answer.ends}
    rows = [row for step in steps for row in StepWriter(explained, step).rows(told)]
    yield from explained.table(COLUMNS, rows)
    if any(parts(row[2])[0].text.startswith(explained.glyphs.sum) for row in rows):
        text = "Σ2: two gradients arrive, also those of other paths, and are added up"
        yield explained.fitted(text, "dim")
