"""An explanation as text: the weights, the steps from the root on, and the paths to each leaf.

Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.notation.textbook import SIGNS
from gradscope.render.answers.explained import Explained
from gradscope.render.answers.explained_chain import ChainWriter, strongest
from gradscope.render.answers.explained_step import StepWriter
from gradscope.render.answers.explained_ways import LeafWriter, summary
from gradscope.render.answers.explained_weights import WeightWriter
from gradscope.render.options import Options
from gradscope.words import count, joined

MOST_STEPS = 16
"""More steps than these are told by one line each."""

LISTED = 4
"""Other leaves named as examples."""

LEGEND = (
    "torch: the formula in torch's derivatives.yaml; grad is the upstream gradient, other names "
    "are operands and what the node saved."
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
        yield explained.heading("Leaf by leaf: what comes along each path, and the sum")
        for ways in explained.answer.ways:
            yield from LeafWriter(explained, ways).lines()
        yield ""
    if any(rule.formulas for rule in explained.answer.rules):
        yield from explained.paragraph(LEGEND, "dim")
    for sign, meaning in SIGNS.items():
        if any(sign in line for line in steps):
            yield from explained.paragraph(meaning, "dim")


def _steps(explained: Explained) -> Iterator[str]:
    path = strongest(explained)
    many = len(explained.answer.steps) > MOST_STEPS and not explained.answer.everything
    if path is not None and many:
        name = explained.name(explained.graph.leaves[explained.answer.ways[0].leaf].node)
        yield explained.heading(f"Step by step along the path that brings most to {name}")
        writer = ChainWriter(explained, path)
        yield from writer.lines()
        yield explained.heading("every step with its numbers: --all, one of them: --node ID", "dim")
        yield ""
        yield from writer.rules()
        yield ""
        return
    if explained.answer.steps:
        yield explained.heading("Step by step: upstream × local derivative = what is sent on")
        for step in explained.answer.steps:
            yield from StepWriter(explained, step).lines()
        yield ""


def _head(explained: Explained) -> Iterator[str]:
    report = explained.report
    leaves = len(explained.graph.leaves)
    target = visible(report.meta.target)
    words = [target, explained.scene.size(), count(leaves, "leaf"), _subject(explained)]
    yield explained.heading(" · ".join(word for word in words if word))
    if explained.scene.alarm():
        yield from explained.paragraph(f"{explained.glyphs.bad} {explained.scene.alarm()}")
    for note in report.notes:
        yield from explained.paragraph(visible(note))
    left = leaves - len(explained.answer.leaves)
    if left and explained.answer.node is None and not explained.answer.asked:
        yield from explained.paragraph(_others(explained))
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
    return f"Of all leaves this one has the longest way. Any other: --leaf NAME ({listed})"


def _subject(explained: Explained) -> str:
    if explained.answer.node is not None:
        return f"node {explained.answer.node} explained"
    root = joined(map(explained.root_label, range(len(explained.graph.roots))))
    return f"from {root} to {summary(explained)}"
