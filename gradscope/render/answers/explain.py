"""An explanation as text: the weights, the steps from the root on, and the paths to each leaf.

Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.notation.textbook import SIGNS
from gradscope.render.answers.explained import Explained
from gradscope.render.answers.explained_paths import PathsWriter
from gradscope.render.answers.explained_step import StepWriter, as_table
from gradscope.render.answers.explained_weights import WeightWriter
from gradscope.render.drawing.verdict import alarm
from gradscope.render.options import Options
from gradscope.words import count, joined, listed, option

LISTED = 4
"""Other leaves named as examples."""


def render(report: Report, options: Options) -> str:
    """The explanation, ending with a newline.

    Raises:
        ReportError: when the report holds none.
    """
    return "\n".join(_lines(Explained(report, options))) + "\n"


def _lines(explained: Explained) -> Iterator[str]:
    answer = explained.answer
    yield from _head(explained)
    if answer.weights is not None:
        yield from WeightWriter(explained, answer.weights).lines()
    if answer.steps:
        yield from _steps(explained)
    if any(end.count is not None for end in answer.ends):
        made = answer.ends[0].leaf is None
        by = f"What {explained.name(answer.ends[0].node)} gets" if made else "Leaf by leaf"
        yield explained.fitted(f"{by}: what comes along each path, and the sum", "bold")
        for end in answer.ends:
            yield from PathsWriter(explained, end).lines()


def _steps(explained: Explained) -> Iterator[str]:
    """All steps; first what signs stand for, here and in the paths."""
    if explained.is_long:
        lines = list(as_table(explained))
    else:
        steps = (StepWriter(explained, one) for one in explained.answer.steps)
        lines = [line for one in steps for line in one.lines()]
    row = ", a row each" * explained.is_long
    title = f"Step by step{row}: upstream × local derivative = what is sent on"
    if explained.backward is None:
        title = f"Step by step{row}: the derivative of each operation"
    yield explained.fitted(title, "bold")
    text = "".join(lines)
    for sign, meaning in SIGNS.items():
        if sign in text:
            yield from explained.wrapped(meaning, "dim")
    yield from (*lines, *_left_out(explained), "")


def _left_out(explained: Explained) -> Iterator[str]:
    """How many steps are on the ways to what is explained, and not told; how to see all."""
    between = {explained.edge(number).source for number in explained.leading}
    left = len(between) - len(explained.answer.steps)
    what = count(left, "more step") if left > 0 else "every step with its numbers"
    every = "" if explained.everything else f"{option('all')}, "
    if left > 0 or explained.is_long:
        yield from explained.wrapped(f"{what}: {every}one of them: {option('node', 'ID')}", "dim")


def _head(explained: Explained) -> Iterator[str]:
    report, answer = explained.report, explained.answer
    leaves = explained.graph.leaves
    subject = f"node {answer.node} explained"
    if answer.node is None:
        ends = joined(explained.name(end.node) for end in answer.ends)
        subject = f"from {explained.roots} to {ends}"
    size = count(len(leaves), "leaf")
    yield explained.headed(report.meta.target, explained.scene.size(), size, subject)
    if told := alarm(explained.scene):
        yield from explained.wrapped(f"{explained.glyphs.bad} {told}")
    for note in report.notes:
        yield from explained.wrapped(visible(note))
    known = {end.node for end in answer.ends}
    others = [leaf for leaf in leaves if leaf.names and leaf.node not in known]
    if others and answer.node is None and not answer.asked:
        names = listed((visible(leaf.names[0]) for leaf in others), LISTED)
        other = option("leaf", "NAME")
        text = f"This leaf has the longest path. For another one: {other} ({names})"
        yield from explained.wrapped(text)
    yield ""
