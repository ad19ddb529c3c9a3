"""All steps of an explanation, each in full or as a table, and torch's formulas.

Must not know of paths or weights."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.render.answers.explained import INDENT, Explained
from gradscope.render.answers.explained_step import COLUMNS, StepWriter
from gradscope.render.words.table import Cell, Part, parts
from gradscope.words import option

MOST_IN_FULL = 16
"""More steps than these have a row each."""

MOST_ROWS = 40
"""Of more steps the first and the last have a row."""

LONGEST_FORMULA = 300


def is_long(explained: Explained) -> bool:
    """Whether there are so many steps that each has a row."""
    return len(explained.answer.steps) > MOST_IN_FULL and not explained.everything


def in_full(explained: Explained) -> Iterator[list[str]]:
    """The lines of each step."""
    yield from (list(StepWriter(explained, step).lines()) for step in explained.answer.steps)


def as_table(explained: Explained) -> Iterator[str]:
    """A row for each operand of each step, of too many steps the first and the last."""
    steps = explained.answer.steps
    told = {step.node for step in steps} | {end.node for end in explained.ends}
    edges = {
        number
        for number in explained.leading
        if {explained.edge(number).source, explained.edge(number).target} <= told
    }
    half = MOST_ROWS // 2
    left = steps[half:-half] if len(steps) > MOST_ROWS else ()
    rows: list[list[Cell]] = []
    for step in steps[:half] if left else steps:
        rows += StepWriter(explained, step).rows(edges)
    if left:
        text = f"… the steps between, #{left[0].node} to #{left[-1].node}"
        rows.append([Part(f"{text}: {option('all')}", "dim")])
        rows += (row for step in steps[-half:] for row in StepWriter(explained, step).rows(edges))
    yield from explained.table(COLUMNS, rows)
    if any(len(row) > 1 and parts(row[2])[0].text.startswith(explained.glyphs.sum) for row in rows):
        text = "Σ2: two gradients arrive, also those of other paths, and are added up"
        yield explained.fitted(text, "dim")


_OF_TORCH_ALONE = re.compile(r"_backward|sym_|handle_|maybe_|scalar_type|layout|::|[?<{]")
"""What stands in formulas that only who knows torch's C++ can read."""


def formulas(explained: Explained) -> Iterator[str]:
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
