"""A long chain as a table: the path that brings most to a tensor, a line a step, with the numbers
of small tensors.

Must not know how a step is told in full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradscope.escaping import visible
from gradscope.model.explanation import DerivativeRule, Path
from gradscope.model.report import GradientInfo
from gradscope.render.answers.explained import Explained, repeats
from gradscope.render.answers.explained_step import teaches
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import cells
from gradscope.simplify.gradients import combine
from gradscope.words import count, option

MOST_LINES = 32
"""Of a chain that is not told in full."""

LEFT = 30
"""Cells that two gradients beside each other leave to the step and what it computes."""

LONGEST_RULE = 160
"""Characters of a formula below it."""

COLUMNS = (
    Column("step", narrowest=16, comfort=24),
    Column("expression", drop=3, narrowest=10, comfort=20),
    Column("‖upstream‖", right=True),
    Column("‖sent on‖", right=True),
    Column("ratio", right=True, drop=4),
    Column("source", drop=2),
)

NUMBERED = (
    Column("step", narrowest=16, comfort=24),
    Column("expression", drop=3, narrowest=10, comfort=20, essential=True),
    Column("upstream", right=True),
    Column("× local", right=True, drop=1),
    Column("sent on", right=True),
    Column("source", drop=2),
)
"""Where tensors are small enough to be written out."""


@dataclass(frozen=True)
class Stretch:
    """Steps of a path that follow each other: one, or those made in one call of a module."""

    edges: tuple[int, ...]
    call: int | None


class ChainWriter:
    """Writes the strongest path to a leaf."""

    def __init__(self, explained: Explained, path: Path) -> None:
        self.explained = explained
        self.graph = explained.graph
        self.path = path
        self.stretches = self._folded()

    def lines(self) -> Iterator[str]:
        """The table, then the formula of every op on the path."""
        explained = self.explained
        numbered = list(map(self._numbered_row, self.stretches))
        if any(row[3][0].text for row in numbered):
            yield from explained.table(NUMBERED, numbered)
        else:
            yield from explained.table(COLUMNS, map(self._row, self.stretches))
        folded = sum(len(one.edges) > 1 and one.call is not None for one in self.stretches)
        if folded:
            text = count(folded, "module call")
            yield explained.fitted(f"{text} folded, each with what the path does in it", "dim")
        sums = sum(bool(self._joined(stretch)) for stretch in self.stretches)
        if sums:
            text = "two gradients arrive and are added up, that of the path and another"
            yield explained.fitted(f"{explained.glyphs.sum}2: {text}", "dim")

    def rules(self) -> Iterator[str]:
        """The formula of each kind of step, once, where it is in words of tensors."""
        explained = self.explained
        on_path = {self.graph.edges[edge].source for edge in self.path.edges}
        used = {step.rule for step in explained.answer.steps if step.node in on_path}
        told = [
            line for index in sorted(used) for line in self._rule(explained.answer.rules[index])
        ]
        if told:
            yield explained.fitted("Formulas of torch for these steps", "bold")
            yield from told
            yield ""

    # ------------------------------------------------------------------ folding

    def _folded(self) -> list[Stretch]:
        """As finely as there is room: the deepest level of module calls that is short enough."""
        edges = self.path.edges
        every = [Stretch((edge,), None) for edge in edges]
        if self.explained.everything or len(edges) <= MOST_LINES:
            return every
        deepest = max((len(self._calls(edge)) for edge in edges), default=0)
        for depth in range(deepest, 0, -1):
            found = self._at_depth(depth)
            if len(found) <= MOST_LINES:
                return found
        return _middle_left_out(self._without_rounds() if not deepest else self._at_depth(1))

    def _without_rounds(self) -> list[Stretch]:
        """Of each loop the first and the last round, and all between them as one."""
        edges = self.path.edges
        nodes = [self.graph.edges[edge].source for edge in edges]
        found: list[Stretch] = []
        done = 0
        for start, period, times in repeats(self.explained, nodes):
            last = start + period * (times - 1)
            found += (Stretch((edge,), None) for edge in edges[done : start + period])
            found.append(Stretch(edges[start + period : last], None))
            done = last
        return found + [Stretch((edge,), None) for edge in edges[done:]]

    def _at_depth(self, depth: int) -> list[Stretch]:
        """Steps in one call at this depth, one after the other, are one stretch."""
        found: list[Stretch] = []
        for edge in self.path.edges:
            calls = self._calls(edge)
            call = calls[depth - 1] if len(calls) >= depth else None
            if found and call is not None and found[-1].call == call:
                found[-1] = Stretch((*found[-1].edges, edge), call)
            else:
                found.append(Stretch((edge,), call))
        return found

    def _calls(self, edge: int) -> list[int]:
        """The module calls that the node of an edge was made in, outermost first."""
        call = self.graph.nodes[self.graph.edges[edge].source].call
        found: list[int] = []
        while call is not None:
            found.append(call)
            call = self.graph.calls[call].parent
        return found[::-1]

    # ------------------------------------------------------------------ rows

    def _row(self, stretch: Stretch) -> list[Cell]:
        first, last = stretch.edges[0], stretch.edges[-1]
        above, sent = self._entering(first), self.explained.on_edge(last)
        name, expression, place = self._words(stretch)
        return [
            (Part(name, "bold"),),
            (Part(expression, "cyan"),),
            (Part(f"{self._joined(stretch)}{_size(above)}"),),
            (Part(_size(sent)),),
            (Part(_ratio(above, sent)),),
            (Part(place, "dim"),),
        ]

    def _numbered_row(self, stretch: Stretch) -> list[Cell]:
        """The same with the numbers of small tensors, and local derivatives that are known."""
        explained = self.explained
        step, expression, _, _, _, place = self._row(stretch)
        first, last = stretch.edges[0], stretch.edges[-1]
        source, end = explained.edge(first).source, explained.edge(last)
        output = self._output(first)
        above = self._amount(self._entering(first), explained.shape(source, output))
        sent = self._amount(explained.on_edge(last), explained.shape(end.target, end.output))
        local = explained.locals.get((first, output)) if first == last else None
        factor = self._short(explained.local(local)) if local and local.diagonal else ""
        return [
            step,
            expression,
            (Part(f"{self._joined(stretch)}{above}"),),
            (Part(f"× {factor}" if factor else ""),),
            (Part(sent),),
            place,
        ]

    def _output(self, edge: int) -> int:
        """By which output of its node the path came to the step whose edge this is."""
        before = self.path.edges.index(edge) - 1
        if before < 0:
            return self.graph.roots[self.path.root].output
        return self.graph.edges[self.path.edges[before]].output

    def _amount(self, info: GradientInfo | None, shape: tuple[int, ...] | None) -> str:
        text = self.explained.gradient(info, shape)
        return self._short(text) or (f"‖{_size(info)}‖" if info else "")

    def _short(self, text: str) -> str:
        """A text that leaves room for others like it."""
        room = self.explained.options.width - LEFT
        return text if cells(text) <= room // 2 else ""

    def _joined(self, stretch: Stretch) -> str:
        """``Σ2`` where more gradients than that of the path are added up before the first step."""
        explained = self.explained
        node = self.graph.edges[stretch.edges[0]].source
        arrived = [explained.on_edge(edge) for edge in explained.arriving[node]]
        outputs = range(len(self.graph.nodes[node].outputs))
        arrived += [seed for output in outputs for seed in explained.seeds(node, output)]
        count = sum(one is not None and one.state not in ("none", "not reached") for one in arrived)
        return f"{explained.glyphs.sum}{count} " if count > 1 else ""

    def _words(self, stretch: Stretch) -> tuple[str, str, str]:
        explained, glyphs = self.explained, self.explained.glyphs
        if stretch.call is not None and len(stretch.edges) > 1:
            call = self.graph.calls[stretch.call]
            name = f"{glyphs.module} {visible(call.path)} {visible(call.type)}"
            return name, count(len(stretch.edges), "step"), ""
        if len(stretch.edges) > 1:
            return glyphs.ellipsis, f"{len(stretch.edges):,} more steps: {option('all')}", ""
        node = self.graph.nodes[self.graph.edges[stretch.edges[0]].source]
        sign = glyphs.root if node.id in {root.node for root in self.graph.roots} else glyphs.op
        name = f"{sign} #{node.id} {explained.title(node)}"
        return name, explained.expression(node), explained.scene.place(node.origin)

    def _entering(self, edge: int) -> GradientInfo | None:
        if self.explained.backward is None:
            return None
        node = self.graph.edges[edge].source
        row = self.explained.backward.upstream[node]
        found = [self.explained.backward.gradients[entry] for entry in row]
        return combine([one for one in found if one.state not in ("none", "not reached")])

    def _rule(self, rule: DerivativeRule) -> Iterator[str]:
        explained = self.explained
        op = visible(rule.op)
        if not rule.formulas:
            yield from explained.wrapped(f"{op}: {visible(rule.why)}", "dim", indent=3)
        for formula in rule.formulas:
            text = formula.text
            if not teaches(text):
                continue
            if len(text) > LONGEST_RULE:
                text = f"{text[:LONGEST_RULE]}…"
            line = f"{op} {', '.join(formula.arguments)}: {visible(text)}"
            yield from explained.wrapped(line, "dim", indent=3)


def _middle_left_out(stretches: list[Stretch]) -> list[Stretch]:
    """Both ends of a chain that is too long, and all that is between them as one."""
    half = MOST_LINES // 2
    if len(stretches) <= MOST_LINES:
        return stretches
    between = [edge for one in stretches[half:-half] for edge in one.edges]
    return [*stretches[:half], Stretch(tuple(between), None), *stretches[-half:]]


def _size(info: GradientInfo | None) -> str:
    if info is None:
        return ""
    return info.state if info.norm is None else numbers.number(info.norm)


def _ratio(above: GradientInfo | None, sent: GradientInfo | None) -> str:
    if not above or not sent or not above.norm or sent.norm is None:
        return ""
    return f"×{float(sent.norm) / float(above.norm):.3g}"
