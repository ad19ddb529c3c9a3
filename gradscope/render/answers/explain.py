"""An explanation as text: the weights, the steps from the root on, and the paths to each leaf.

Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradscope.escaping import visible
from gradscope.model.explanation import DerivativeRule, Path
from gradscope.model.report import GradientInfo, Report
from gradscope.notation.textbook import SIGNS
from gradscope.render.answers.explained import Explained
from gradscope.render.answers.explained_step import StepWriter
from gradscope.render.answers.explained_ways import LeafWriter, summary
from gradscope.render.answers.explained_weights import WeightWriter
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part
from gradscope.simplify.gradients import combine
from gradscope.words import count, joined, option

MOST_STEPS = 16
"""More steps than these are told by one line each."""

LISTED = 4
"""Other leaves named as examples."""

LEGEND = (
    "torch: the formula in torch's derivatives.yaml; grad is the upstream gradient, other names "
    "are operands and what the node saved."
)

MOST_LINES = 32
"""Of a chain that is not told in full."""

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


def render(report: Report, options: Options) -> str:
    """The explanation, ending with a newline.

    Raises:
        ReportError: when the report holds none.
    """
    explained = Explained(report, options)
    return "\n".join(_lines(explained)) + "\n"


def _lines(explained: Explained) -> Iterator[str]:
    yield from _head(explained)
    if explained.answer.weights is not None and explained.answer.node is None:
        yield from WeightWriter(explained, explained.answer.weights).lines()
        yield ""
    steps = list(_steps(explained))
    yield from steps
    if explained.answer.ways:
        yield explained.fitted("Leaf by leaf: what comes along each path, and the sum", "bold")
        for ways in explained.answer.ways:
            yield from LeafWriter(explained, ways).lines()
        yield ""
    if any(rule.formulas for rule in explained.answer.rules):
        yield from explained.wrapped(LEGEND, "dim")
    for sign, meaning in SIGNS.items():
        if any(sign in line for line in steps):
            yield from explained.wrapped(meaning, "dim")


def _steps(explained: Explained) -> Iterator[str]:
    path = strongest(explained)
    many = len(explained.answer.steps) > MOST_STEPS and not explained.answer.everything
    if path is not None and many:
        name = explained.name(explained.graph.leaves[explained.answer.ways[0].leaf].node)
        yield explained.fitted(f"Step by step along the path that brings most to {name}", "bold")
        writer = ChainWriter(explained, path)
        yield from writer.lines()
        ways = f"{option('all')}, one of them: {option('node', 'ID')}"
        yield explained.fitted(f"every step with its numbers: {ways}", "dim")
        yield ""
        yield from writer.rules()
        yield ""
        return
    if explained.answer.steps:
        yield explained.fitted(
            "Step by step: upstream × local derivative = what is sent on", "bold"
        )
        for step in explained.answer.steps:
            yield from StepWriter(explained, step).lines()
        yield ""


def _head(explained: Explained) -> Iterator[str]:
    report = explained.report
    leaves = len(explained.graph.leaves)
    target = visible(report.meta.target)
    words = [target, explained.scene.size(), count(leaves, "leaf"), _subject(explained)]
    yield explained.fitted(" · ".join(word for word in words if word), "bold")
    if explained.scene.alarm():
        yield from explained.wrapped(f"{explained.glyphs.bad} {explained.scene.alarm()}")
    for note in report.notes:
        yield from explained.wrapped(visible(note))
    left = leaves - len(explained.answer.leaves)
    if left and explained.answer.node is None and not explained.answer.asked:
        yield from explained.wrapped(_others(explained))
    yield ""


def _others(explained: Explained) -> str:
    """Which other leaves could be explained."""
    known = set(explained.answer.leaves)
    names = [
        explained.name(leaf.node)
        for index, leaf in enumerate(explained.graph.leaves)
        if index not in known and leaf.names
    ]
    listed = ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    other = option("leaf", "NAME")
    return f"This leaf has the longest path. For another one: {other} ({listed})"


def _subject(explained: Explained) -> str:
    if explained.answer.node is not None:
        return f"node {explained.answer.node} explained"
    root = joined(map(explained.root_label, range(len(explained.graph.roots))))
    return f"from {root} to {summary(explained)}"


# ---------------------------------------------------------------- a long chain as a table


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
        """The formula of each kind of step, once."""
        explained = self.explained
        yield explained.fitted("How these steps compute what they send", "bold")
        on_path = {self.graph.edges[edge].source for edge in self.path.edges}
        used = {step.rule for step in explained.answer.steps if step.node in on_path}
        for index in sorted(used):
            yield from self._rule(explained.answer.rules[index])

    # ------------------------------------------------------------------ folding

    def _folded(self) -> list[Stretch]:
        """As finely as there is room: the deepest level of module calls that is short enough."""
        edges = self.path.edges
        every = [Stretch((edge,), None) for edge in edges]
        if self.explained.answer.everything or len(edges) <= MOST_LINES:
            return every
        deepest = max((len(self._calls(edge)) for edge in edges), default=0)
        for depth in range(deepest, 0, -1):
            found = self._at_depth(depth)
            if len(found) <= MOST_LINES:
                return found
        return _middle_left_out(self._at_depth(1))

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


def strongest(explained: Explained) -> Path | None:
    """The path that brings most to the first leaf that is explained."""
    paths: Sequence[Path] = [path for ways in explained.answer.ways[:1] for path in ways.paths[:1]]
    return paths[0] if paths else None


def _size(info: GradientInfo | None) -> str:
    if info is None:
        return ""
    return info.state if info.norm is None else numbers.number(info.norm)


def _ratio(above: GradientInfo | None, sent: GradientInfo | None) -> str:
    if not above or not sent or not above.norm or sent.norm is None:
        return ""
    return f"×{float(sent.norm) / float(above.norm):.3g}"
