"""An explanation as text: the weights, the steps from the root on, and the paths to each leaf.

Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.notation.textbook import SIGNS
from gradscope.render.answers.explained import Explained, Rounds, between, folded, heading
from gradscope.render.answers.explained_chain import ChainWriter
from gradscope.render.answers.explained_step import StepWriter
from gradscope.render.answers.explained_ways import LeafWriter, Operands
from gradscope.render.answers.explained_weights import WeightWriter, roots
from gradscope.render.options import Options
from gradscope.words import count, joined, option

MOST_STEPS = 16
"""More steps than these are told by one line each."""

LISTED = 4
"""Other leaves named as examples."""

LEGEND = (
    "torch: the formula in torch's derivatives.yaml; grad is the upstream gradient, other names "
    "are operands and what the node saved."
)

MARKS = "u→, v→: the operand of that step, named there, by which the path goes on."


class _Block(NamedTuple):
    """Lines that belong together, and what they tell of."""

    lines: list[str]
    kind: Literal["", "step", "end"] = ""


def render(report: Report, options: Options) -> str:
    """The explanation, ending with a newline.

    Raises:
        ReportError: when the report holds none.
    """
    explained = Explained(report, options)
    return "\n".join(_fitting(explained, list(_blocks(explained)))) + "\n"


def _fitting(explained: Explained, blocks: list[_Block]) -> list[str]:
    """All lines; on a terminal those that it shows at once, and what there is besides."""
    lines = [line for block in blocks for line in block.lines]
    room = explained.options.screen
    if not room or explained.everything or len(lines) <= room:
        return lines
    shown: list[str] = []
    left = list(blocks)
    while left and len(shown) + len(left[0].lines) < room:
        shown += left.pop(0).lines
    if left and len(left[0].lines) > room // 2:  # a long table: as far as there is room
        shown += left[0].lines[: room - 1 - len(shown)]
    kinds = [block.kind for block in left]
    named = "tensor" if explained.answer.tensor else "leaf"
    parts = [count(kinds.count("step"), "step")] * ("step" in kinds)
    parts += [count(kinds.count("end"), named)] * ("end" in kinds)
    more = count(len(lines) - len(shown), "more line")
    of = f" ({', '.join(parts)})" if parts else ""
    return [*shown, explained.fitted(f"… {more}{of}: {option('all')}", "bold")]


def _blocks(explained: Explained) -> Iterator[_Block]:
    yield _Block(list(_head(explained)))
    if explained.answer.weights is not None and explained.answer.node is None:
        for part in WeightWriter(explained, explained.answer.weights).parts():
            yield _Block([*part, ""])
    steps = list(_steps(explained))
    yield from steps
    operands = Operands(explained)
    if explained.answer.ways:
        text = "what comes along each path, and the sum"
        by = f"What {explained.ends[0].name} gets" if explained.answer.tensor else "Leaf by leaf"
        lines = [explained.fitted(f"{by}: {text}", "bold")]
        for ways in explained.answer.ways:
            yield _Block([*lines, *LeafWriter(explained, ways, operands).lines()], "end")
            lines = []
        yield _Block([""])
    yield _Block(list(_legends(explained, [line for one in steps for line in one.lines], operands)))


def _legends(explained: Explained, steps: list[str], operands: Operands) -> Iterator[str]:
    if operands.used:
        yield from explained.wrapped(MARKS, "dim")
    formulas = (one for rule in explained.answer.rules for one in rule.formulas)
    begins = [visible(f"{', '.join(one.arguments)}: {one.text[:9]}") for one in formulas]
    if any(begin in line for begin in begins for line in steps):
        yield from explained.wrapped(LEGEND, "dim")
    for sign, meaning in SIGNS.items():
        if any(sign in line for line in steps):
            yield from explained.wrapped(meaning, "dim")


def _steps(explained: Explained) -> Iterator[_Block]:
    strongest = [path for ways in explained.answer.ways[:1] for path in ways.paths[:1]]
    entries = folded(explained)
    if strongest and _is_long(explained, entries):
        name = explained.ends[0].name
        writer = ChainWriter(explained, strongest[0])
        ways = f"{option('all')}, one of them: {option('node', 'ID')}"
        yield _Block(
            [
                explained.fitted(f"Step by step along the path that brings most to {name}", "bold"),
                *writer.lines(),
                explained.fitted(f"every step with its numbers: {ways}", "dim"),
                "",
            ]
        )
        yield _Block([*writer.rules()])
        return
    if entries:
        text = "upstream × local derivative = what is sent on"
        if explained.backward is None:
            text = "the derivative of each operation"
        lines = [explained.fitted(f"Step by step: {text}", "bold")]
        for entry in entries:
            for step in _entry(explained, entry):
                yield _Block([*lines, *step], "step")
                lines = []
        yield _Block([*_left_out(explained), ""])


def _left_out(explained: Explained) -> Iterator[str]:
    """How many steps are on the ways to what is explained, and not told."""
    if explained.answer.node is not None or explained.everything:
        return
    between = {explained.edge(number).source for number in explained.leading}
    left = len(between) - len(explained.answer.steps)
    if left > 0:
        ways = f"{option('all')}, one of them: {option('node', 'ID')}"
        text = f"{count(left, 'more step')} on other paths: {ways}"
        yield from explained.wrapped(text, "dim")


def _is_long(explained: Explained, entries: list[Rounds]) -> bool:
    """Whether a line a step says more: there are too many, or they repeat what has no numbers."""
    steps = explained.answer.steps
    if explained.everything or len(steps) <= MOST_STEPS:
        return False
    told = sum(len(one) for entry in entries for one in entry.told)
    return told > MOST_STEPS or 2 * sum(bool(step.locals) for step in steps) < len(steps)


def _entry(explained: Explained, entry: Rounds) -> Iterator[list[str]]:
    """The lines of each step, or of those of a loop that are told."""
    before = [heading(explained, entry)] if len(entry.rounds) > 1 else []
    for number, one in enumerate(entry.told):
        if number:
            before = list(between(explained, entry))
        for step in one:
            yield [*before, *StepWriter(explained, step).lines()]
            before = []


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
    return f"from {roots(explained)} to {joined(end.name for end in explained.ends)}"
