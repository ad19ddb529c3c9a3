"""An explanation as text: the weights, the steps from the root on, and the paths to each leaf.

Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.notation.textbook import SIGNS
from gradscope.render.answers.explained import INDENT, Explained
from gradscope.render.answers.explained_paths import leaf_by_leaf
from gradscope.render.answers.explained_step import StepWriter, as_table, is_long
from gradscope.render.answers.explained_weights import WeightWriter
from gradscope.render.drawing.verdict import alarm
from gradscope.render.options import Options
from gradscope.words import count, joined, option

LISTED = 4
"""Other leaves named as examples."""

LONGEST_FORMULA = 300


def render(report: Report, options: Options) -> str:
    """The explanation, ending with a newline.

    Raises:
        ReportError: when the report holds none.
    """
    return "\n".join(_lines(Explained(report, options))) + "\n"


def _lines(explained: Explained) -> Iterator[str]:
    yield from _head(explained)
    if explained.answer.weights is not None and explained.answer.node is None:
        for part in WeightWriter(explained, explained.answer.weights).parts():
            yield from (*part, "")
    paths = list(leaf_by_leaf(explained)) if explained.answer.ways else []
    yield from _steps(explained, "".join(paths))
    yield from (*paths, "") if paths else ()
    yield from _formulas(explained)


def _steps(explained: Explained, paths: str) -> Iterator[str]:
    """All steps; first what signs stand for, here and in the paths."""
    if not explained.answer.steps:
        return
    if is_long(explained):
        lines = list(as_table(explained))
        title = "Step by step, a row each: upstream × local derivative = what is sent on"
    else:
        steps = (StepWriter(explained, one) for one in explained.answer.steps)
        lines = [line for one in steps for line in one.lines()]
        title = "Step by step: upstream × local derivative = what is sent on"
        if explained.backward is None:
            title = "Step by step: the derivative of each operation"
    yield explained.fitted(title, "bold")
    text = "".join(lines) + paths
    for sign, meaning in SIGNS.items():
        if sign in text:
            yield from explained.wrapped(meaning, "dim")
    yield from (*lines, *_left_out(explained), "")


def _left_out(explained: Explained) -> Iterator[str]:
    """How many steps are on the ways to what is explained, and not told; how to see all."""
    if explained.answer.node is not None:
        return
    between = {explained.edge(number).source for number in explained.leading}
    left = len(between) - len(explained.answer.steps)
    ways = f"one of them: {option('node', 'ID')}"
    if not explained.everything:
        ways = f"{option('all')}, {ways}"
    if left > 0:
        # Of a path of many thousands of steps not all are told.
        strongest = explained.answer.ways[0].paths[:1] if explained.answer.ways else ()
        own = {explained.edge(edge).source for path in strongest for edge in path.edges}
        where = " on other paths" if own <= explained.steps.keys() else ""
        yield from explained.wrapped(f"{count(left, 'more step')}{where}: {ways}", "dim")
    elif is_long(explained):
        yield explained.fitted(f"every step with its numbers: {ways}", "dim")


def _head(explained: Explained) -> Iterator[str]:
    report = explained.report
    leaves = len(explained.graph.leaves)
    target = visible(report.meta.target)
    words = [target, explained.scene.size(), count(leaves, "leaf"), _subject(explained)]
    yield explained.fitted(" · ".join(word for word in words if word), "bold")
    if told := alarm(explained.scene):
        yield from explained.wrapped(f"{explained.glyphs.bad} {told}")
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
    return f"from {explained.roots} to {joined(end.name for end in explained.ends)}"


_OF_TORCH_ALONE = re.compile(r"_backward|sym_|handle_|maybe_|scalar_type|layout|::|[?<{]")
"""What stands in formulas that only who knows torch's C++ can read."""


def _formulas(explained: Explained) -> Iterator[str]:
    """Torch's own formulas of all steps, each once: those in words of tensors, or all."""
    names: dict[int, str] = {}
    wanted: dict[int, set[str]] = {}
    for step in explained.answer.steps:
        slots = {explained.edge(edge).slot for edge in StepWriter(explained, step).edges}
        operands = (name for slot, name in enumerate(step.arguments) if slot in slots)
        names[step.rule] = explained.title(explained.graph.nodes[step.node])
        wanted.setdefault(step.rule, set()).update(one.partition("[")[0] for one in operands)
    without: dict[str, list[str]] = {}
    told: list[str] = []
    for number, name in sorted(names.items()):
        rule = explained.answer.rules[number]
        if rule.why:
            without.setdefault(rule.why, []).append(name)
        for one in rule.formulas:
            is_wanted = not wanted[number] or wanted[number] & {*one.arguments}
            teaches = one.text != "grad" and not _OF_TORCH_ALONE.search(one.text)
            if is_wanted and (teaches or explained.everything):
                cut = one.text[:LONGEST_FORMULA] + "…" * (len(one.text) > LONGEST_FORMULA)
                told.append(f"{name} {', '.join(one.arguments)}: {cut}")
    if told:
        text = "Formulas of torch (derivatives.yaml): grad is the upstream gradient, other names "
        yield from explained.wrapped(f"{text}are operands and what the node saved", "bold")
    told += (f"{', '.join(ops)}: {why}" for why, ops in without.items())
    for text in told:
        yield from explained.wrapped(visible(text), "dim", INDENT)
