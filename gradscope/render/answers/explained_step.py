"""One step of the chain rule in full: the forward values, the upstream gradient, and for each
operand the derivative and what is sent to it.

Must not know how steps are put together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.explanation import ChainStep, Local
from gradscope.model.report import GradientInfo
from gradscope.render.answers.explained import LABEL, Explained, agree, total
from gradscope.render.answers.explained_wording import Wording
from gradscope.render.words import numbers
from gradscope.render.words.text import cells

LONGEST_FORMULA = 300

MOST_NUMBERS = 16
"""A matrix with more is not written out."""

BAD = "bold #d0327a"


@dataclass
class StepWriter:
    """Writes one step."""

    explained: Explained
    step: ChainStep

    def __post_init__(self) -> None:
        self.graph = self.explained.graph
        self.node = self.graph.nodes[self.step.node]
        self.rule = self.explained.answer.rules[self.step.rule]
        self.wording = Wording(self.explained, self.step)
        leading = self.explained.leading if self.explained.answer.node is None else None
        self.edges = [
            edge
            for edge in self.explained.leaving[self.step.node]
            if leading is None or edge in leading
        ]

    def lines(self) -> Iterator[str]:
        """All lines of the step."""
        yield self._head()
        yield from self._value()
        yield from self._upstream()
        for edge in self.edges:
            yield from self._sent(edge)
        yield from self._source()

    # ------------------------------------------------------------------ the forward side

    def _head(self) -> str:
        explained = self.explained
        roots = {root.node for root in self.graph.roots}
        sign = explained.glyphs.root if self.node.id in roots else explained.glyphs.op
        place = explained.scene.place(self.node.origin)
        title = f"{sign} #{self.node.id} {explained.title(self.node)}"
        return explained.headline(f"{title}  {explained.expression(self.node)}", place)

    def _value(self) -> Iterator[str]:
        outputs = range(len(self.node.outputs))
        scene = self.explained.scene
        results = [self.explained.tensor(scene.tensor(self.node.id, k)) for k in outputs]
        if not results or not all(results):
            return
        taken = self.wording.taken() if len(results) == 1 else ""
        text = f"{taken} = {results[0]}" if taken else ", ".join(results)
        yield from self.explained.entry("value", text)

    # ------------------------------------------------------------------ the backward side

    def _upstream(self) -> Iterator[str]:
        for output in range(len(self.node.outputs)):
            text = self._arrived(output)
            if text:
                label = "upstream" if len(self.node.outputs) == 1 else f"upstream{output}"
                yield from self.explained.entry(label, text)

    def _arrived(self, output: int) -> str:
        explained = self.explained
        total = explained.upstream(self.node.id, output)
        if total is None or total.state == "not reached":
            return ""
        shape = explained.shape(self.node.id, output)
        given = explained.seeds(self.node.id, output)
        edges = [e for e in explained.arriving[self.node.id] if explained.edge(e).output == output]
        parts = [(explained.gradient(seed, shape), "given") for seed in given]
        for edge in edges:
            info = explained.on_edge(edge)
            if info is not None and info.state != "not reached":
                name = f"from #{explained.edge(edge).source}"
                parts.append((explained.gradient(info, shape), name))
        text = explained.gradient(total, shape)
        origin = ", ".join(name for _, name in parts)
        added = " + ".join(part for part, _ in parts)
        hook = explained.backward.hook_on(self.node.id) if explained.backward is not None else None
        if hook is not None:
            place = f" ({hook})" if hook else ""
            return f"{added}  ({origin}), which a hook of the program{place} replaced by {text}"
        if len(parts) > 1:
            text = f"{added} = {text}"
        return f"{text}  ({origin})" if origin else text

    def _sent(self, edge: int) -> Iterator[str]:
        explained = self.explained
        place = explained.edge(edge)
        info = explained.on_edge(edge)
        named = self.wording.named(place.slot)
        derivative = self.wording.derivative(edge)
        label = f"→ {explained.name(place.target)}"
        if cells(label) >= LABEL:
            label = "→ leaf"
        elif named == explained.name(place.target):
            named = ""  # the label says it
        parts = [part for part in (named, derivative) if part]
        if info is not None and info.state != "not reached":
            parts.append(self._product(edge))
        elif explained.backward is None:
            parts += self._matrix(edge)
        yield from self._laid_out(label, parts)

    def _laid_out(self, label: str, parts: list[str]) -> Iterator[str]:
        """The parts on as few lines as they fit, each on a line of its own otherwise."""
        room = self.explained.options.width - 13
        gap = "    "
        lines: list[str] = []
        for part in parts or ["no gradient goes here"]:
            if lines and cells(lines[-1]) + len(gap) + cells(part) <= room:
                lines[-1] += gap + part
            else:
                lines.append(part)
        for number, line in enumerate(lines):
            yield from self.explained.entry("" if number else label, line)

    def _product(self, edge: int) -> str:
        """``upstream × local = sent``, or how large it was before and after."""
        explained = self.explained
        place = explained.edge(edge)
        info = explained.on_edge(edge)
        sent = explained.gradient(info, explained.shape(place.target, place.output))
        reached = [output for output, info in self._received.items() if info.values is not None]
        found = [(output, explained.locals.get((edge, output))) for output in reached]
        known = [
            (output, local)
            for output, local in found
            if local is not None and self._fits(output, local)
        ]
        words = [self._factors(output, local) for output, local in known]
        whole = len(known) == len(self._received) and all(words)
        rows = [multiplied(self._received[k].values or (), local) for k, local in known]
        product = total(rows)
        if not whole or product is None or info is None or not info.values:
            return f"{self._above()} → {sent}"
        text = " + ".join(words)
        if not agree(product, info.values, explained.precision):
            result = numbers.tensor(product, (len(product),), "float32")
            return f"{text} = {result}, but {sent} was sent"
        return f"{text} = {sent}"

    def _matrix(self, edge: int) -> list[str]:
        """The local Jacobian where no gradient is multiplied with it, and no number says it all."""
        local = self.wording.local(edge)
        if local is None or local.diagonal or len(local.values) > MOST_NUMBERS:
            return []
        return [f"J = {self.explained.local(local)}"]

    def _fits(self, output: int, local: Local) -> bool:
        """Whether as many numbers arrived as the Jacobian has rows: a gradient that was not yet
        reduced to its tensor's shape has more."""
        values = self._received[output].values
        return values is not None and len(values) == local.shape[0]

    @cached_property
    def _received(self) -> dict[int, GradientInfo]:
        """The upstream gradients that arrived, by output."""
        outputs = range(len(self.node.outputs))
        found = {output: self.explained.upstream(self.node.id, output) for output in outputs}
        silent = ("none", "not reached")
        return {k: info for k, info in found.items() if info and info.state not in silent}

    def _above(self) -> str:
        explained = self.explained
        shapes = {output: explained.shape(self.node.id, output) for output in self._received}
        parts = [explained.gradient(one, shapes[k]) for k, one in self._received.items()]
        return ", ".join(parts)

    def _factors(self, output: int, local: Local) -> str:
        """``upstream × local`` in numbers, "" where these are many."""
        info = self._received[output]
        shape = self.explained.shape(self.node.id, output)
        above = self.explained.values(info.values, shape, info.dtype)
        factor = self.explained.local(local)
        if not above or not factor or len(local.values) > MOST_NUMBERS:
            return ""
        return f"{above} {'×' if local.diagonal else '·'} {factor}"

    # ------------------------------------------------------------------ where it is from

    def _source(self) -> Iterator[str]:
        explained = self.explained
        slots = [explained.edge(edge).slot for edge in self.edges]
        wanted = {self.wording.argument(slot).partition("[")[0] for slot in slots}
        shown = [
            one
            for one in self.rule.formulas
            if (wanted & set(one.arguments) or not self.step.arguments)
            and (explained.everything or teaches(one.text))
        ]
        for number, formula in enumerate(shown):
            cut = formula.text[:LONGEST_FORMULA] + "…" * (len(formula.text) > LONGEST_FORMULA)
            text = f"{', '.join(formula.arguments)}: {cut}"
            yield from explained.entry("" if number else "torch", visible(text), "dim")
        if self.rule.why:
            yield from explained.entry("torch", f"{self.node.op}: {visible(self.rule.why)}", "dim")
        if self.step.listing is not None:
            listing = self.step.listing
            yield from explained.entry("backward", f"{visible(listing.file)}:{listing.line}", "dim")
            for text in listing.lines:
                shown_line = explained.glyphs.text(visible(text))
                yield explained.fitted(" " * 15 + shown_line, "cyan")
        if self.step.why:
            text = f"derivatives cannot be computed here, because {visible(self.step.why)}"
            yield from explained.entry("local", text, BAD)


_OF_TORCH_ALONE = re.compile(r"_backward|sym_|handle_|maybe_|scalar_type|layout|::|[?<{]")
"""What stands in formulas that only who knows torch's C++ can read."""


def teaches(formula: str) -> bool:
    """Whether a formula of torch says something that is not said better already."""
    return formula != "grad" and not _OF_TORCH_ALONE.search(formula)


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
