"""The whole Jacobian as a matrix, and how elements of roots are named.

Must not know of steps or paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from gradscope.escaping import visible
from gradscope.model.explanation import Term, Weights
from gradscope.model.plain import Number
from gradscope.render.answers.explained import INDENT, UNNAMED, Explained, Goal
from gradscope.render.answers.explained_step import BAD
from gradscope.render.words import numbers
from gradscope.render.words.table import GAP
from gradscope.render.words.text import cells
from gradscope.words import either, joined


def jacobians(explained: Explained, weights: Weights) -> Iterator[str]:
    """The Jacobian by each tensor that is explained, and v·J where a gradient was given."""
    for column, leaf in enumerate(weights.leaves):
        if column:
            yield ""
        yield from _jacobian(explained, weights, column, explained.end(leaf))
    if not weights.is_given:
        way = either("--gradient V", "gradient=v")
        text = f"{way} gives each row a weight, as backward does: v·J"
        yield from explained.wrapped(text, "dim")


def roots(explained: Explained) -> str:
    """``y and h``: what backward starts from."""
    return joined(map(explained.root_label, range(len(explained.graph.roots))))


def symbol(label: str) -> str:
    """What a root is called in a formula."""
    return label.removeprefix("the ") if label == UNNAMED else label


def element(explained: Explained, term: Term) -> str:
    """``y[2]``, ``z[0,1]``, or the root itself where it is one number."""
    root = explained.graph.roots[term.root]
    shape = explained.shape(root.node, root.output) or ()
    label = symbol(explained.root_label(term.root))
    return f"{label}[{_index(term.element, shape)}]" if shape else label


def _jacobian(explained: Explained, weights: Weights, column: int, end: Goal) -> Iterator[str]:
    label = roots(explained)
    rows = [term.derivatives[column].values or () for term in weights.terms]
    size = len(rows[0]) if rows else 0
    if any(len(row) != size for row in rows):
        text = f"not all numbers of ∂{symbol(label)}/∂{end.name} are known"
        yield from explained.wrapped(text, BAD)
        return
    text = (
        f"J = ∂{symbol(label)}/∂{end.name}{_second(explained, end)}, {len(rows)} × {size}: "
        f"a row for each element of {label}, a column for each of {end.name}"
    )
    yield from explained.wrapped(text, "bold")
    labels = [explained.glyphs.text(element(explained, term)) for term in weights.terms]
    yield from _matrix(explained, labels, rows, end.tensor.shape)
    if weights.is_given:
        given = [term.weight for term in weights.terms]
        product = f"v·J = {_row_of(given)}·J = {_row_of(_product(given, rows))}"
        yield from explained.entry("", product, "bold")


def _second(explained: Explained, end: Goal) -> str:
    """Says of the Jacobian of a gradient that it holds second derivatives."""
    first = re.fullmatch("∂(.+)/∂(.+)", visible(explained.graph.roots[0].label))
    if first is None:
        return ""
    by = f" and {end.name}" if end.name != first[2] else ""
    what = "second derivatives" if by else "Hessian"
    return f", the {what} of {first[1]} by {first[2]}{by}"


def _matrix(
    explained: Explained,
    labels: Sequence[str],
    rows: Sequence[Sequence[Number]],
    shape: tuple[int, ...],
) -> Iterator[str]:
    """Numbered columns, as many side by side as there is room for, and the others below."""
    lead = INDENT + max(map(cells, labels), default=0)
    heads = [f"[{_index(place, shape)}]" if shape else "" for place in range(len(rows[0]))]
    texts = zip(heads, *(map(numbers.element, row) for row in rows), strict=True)
    columns = [[text.rjust(max(map(cells, one))) for text in one] for one in texts]
    while columns:
        ends = accumulate((len(GAP) + cells(one[0]) for one in columns), initial=lead)
        fitting = max(sum(end <= explained.options.width for end in ends) - 1, 1)
        beside, columns = columns[:fitting], columns[fitting:]
        head, *lines = (GAP + GAP.join(line) for line in zip(*beside, strict=True))
        if shape:
            yield explained.paint(" " * lead + head, "dim")
        for label, line in zip(labels, lines, strict=True):
            yield explained.paint(" " * INDENT + label.ljust(lead - INDENT), "dim") + line


def _index(place: int, shape: tuple[int, ...]) -> str:
    found = []
    for size in reversed(shape):
        found.append(str(place % max(size, 1)))
        place //= max(size, 1)
    return ",".join(reversed(found))


def _product(weights: Sequence[Number], rows: Sequence[Sequence[Number]]) -> list[float]:
    columns = zip(*rows, strict=True)
    return [
        sum(float(w) * float(v) for w, v in zip(weights, column, strict=True)) for column in columns
    ]


def _row_of(values: Sequence[Number]) -> str:
    return f"[{', '.join(map(numbers.element, values))}]"
