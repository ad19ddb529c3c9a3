"""The gradient argument as weights, in words and as a table; and the whole Jacobian as a matrix.

Must not know of steps or paths."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from gradscope.escaping import visible
from gradscope.model.explanation import Amount, Weights
from gradscope.model.plain import Number
from gradscope.render.answers.explained import (
    BAD,
    INDENT,
    UNNAMED,
    Explained,
    Goal,
    index_of,
    symbol,
    total,
)
from gradscope.render.words import numbers
from gradscope.render.words.table import GAP, Column, Part
from gradscope.render.words.text import cells
from gradscope.words import either


def _row_of(values: Sequence[Number]) -> str:
    return f"[{', '.join(map(numbers.element, values))}]"


MOST_IN_SUM = 4
"""Terms that the sum is written out with."""


class WeightWriter:
    """Writes what the gradient that was fed in means, and what it does."""

    def __init__(self, explained: Explained, weights: Weights) -> None:
        self.explained = explained
        self.weights = weights
        self.graph = explained.graph
        self.ends = [explained.end(leaf) for leaf in weights.leaves]

    def parts(self) -> Iterator[list[str]]:
        """The words, then a table for each leaf; each part a list of lines."""
        yield list(self._told())
        shown = self.weights.is_given and self.weights.terms
        if shown and not self.explained.answer.jacobian and not self.is_plain():
            for column, end in enumerate(self.ends):
                yield list(self._table(column, end))

    def _told(self) -> Iterator[str]:
        explained = self.explained
        if self.weights.why:
            text = f"The weights cannot be shown, because {self.weights.why}."
            yield from explained.wrapped(text, BAD)
            return
        if not self.weights.total:
            has = "has no element" if len(self.graph.roots) == 1 else "have no elements"
            text = f"{has}, so there is nothing to weigh: every gradient is 0."
            yield from explained.wrapped(f"{explained.roots} {text}")
            return
        if not self.weights.is_given:
            yield from self._jacobians()
            way = either("--gradient V", "gradient=v")
            text = f"{way} gives each row a weight, as backward does: v @ J"
            yield from explained.wrapped(text, "dim")
            return
        if self.is_plain():
            label = explained.root_label(0)
            start = "1" if label == UNNAMED else f"∂{label}/∂{label} = 1"
            yield from explained.wrapped(f"{label} is one number: backward starts with {start}.")
        else:
            yield from self._words()
        if self.explained.answer.jacobian:
            yield ""
            yield from self._jacobians()

    def is_plain(self) -> bool:
        """Whether there is nothing to weigh: one number, and the gradient is 1."""
        terms = self.weights.terms
        return self.weights.total == 1 and [float(term.weight) for term in terms] == [1.0]

    # ------------------------------------------------------------------ in words

    def _words(self) -> Iterator[str]:
        explained = self.explained
        count = self.weights.total
        label = self.explained.roots
        have = "has" if len(self.graph.roots) == 1 else "have"
        text = f"{label} {have} {count:,} elements. The gradient given holds a weight v[i] for "
        text += f"each of them{self._given()}."
        if count == 1 and self.weights.terms:
            given = numbers.element(self.weights.terms[0].weight)
            text = f"{label} is one number, and the gradient given, {given}, is its weight."
        yield from explained.wrapped(f"{text} Backward computes the derivative of")
        yield from explained.wrapped(f"L = {self._sum()}", "bold", indent=4)
        yield from explained.wrapped(self._meaning())

    def _given(self) -> str:
        if self.weights.terms:
            return f": v = {_row_of([term.weight for term in self.weights.terms])}"
        backward = self.explained.backward
        norms = [backward.gradients[entry].norm for entry in backward.seeds] if backward else []
        if not norms or None in norms:
            return ""
        return f", ‖v‖ = {numbers.number(math.hypot(*(float(one or 0) for one in norms)))}"

    def _sum(self) -> str:
        every = self.weights.terms
        if not every:
            label = symbol(self.explained.root_label(0))
            return f"(v * {label}).sum()" + " + …" * (len(self.graph.roots) > 1)
        terms = [term for term in every if float(term.weight)] or every[:1]
        parts = [
            f"{numbers.element(term.weight)} × {self.explained.element(term)}"
            for term in terms[:MOST_IN_SUM]
        ]
        left = len(terms) - len(parts)
        more = f" + … ({left:,} more)" if left > 0 else ""
        return " + ".join(parts).replace("+ -", "- ") + more

    def _meaning(self) -> str:
        terms, label = self.weights.terms, self.explained.roots
        each = [
            f"{numbers.element(t.weight)} is ∂L/∂{self.explained.element(t)}" for t in terms[:3]
        ]
        each = each or [f"v[i] is ∂L/∂{symbol(label)}[i]"]
        more = ", and so on" if len(terms) > len(each) else ""
        changes = "that element" if self.weights.total > 1 else "it"
        meant = (
            f"So {', '.join(each)}{more}: how much L changes with {changes}. L need not exist here."
        )
        if "loss" in label.lower():
            # What is called so has several elements here, so it is not the loss of a training.
            such = f", such as (v * {label}).sum()" if label.isidentifier() else ""
            meant += f" It is one number made of {label}{such}."
        else:
            meant += " In a training L is the loss, and the weights come from the steps after "
            meant += f"{label}."
        return " ".join(part for part in (meant, self._special()) if part)

    def _special(self) -> str:
        """What all ones, and a single one, are used for."""
        weights = [float(term.weight) for term in self.weights.terms]
        if len(weights) < 2:
            return ""
        if set(weights) == {1.0}:
            return f"All weights are 1 here, so L is {self._added_up()}."
        if sorted(weights)[-2:] == [0.0, 1.0] and min(weights) == 0.0:
            one = self.explained.element(self.weights.terms[weights.index(1.0)])
            return f"A single 1 picks one row of the Jacobian, here that of {one}."
        return ""

    def _added_up(self) -> str:
        """``y.sum()``, or ``a + b`` of several roots that are one number each."""
        terms = []
        for number, root in enumerate(self.graph.roots):
            label = symbol(self.explained.root_label(number))
            is_number = not self.explained.shape(root.node, root.output)
            terms.append(label if is_number else f"{label}.sum()")
        return " + ".join(terms)

    # ------------------------------------------------------------------ the whole Jacobian

    def _jacobians(self) -> Iterator[str]:
        """The Jacobian by each tensor that is explained, and v @ J where a gradient was given."""
        for column, end in enumerate(self.ends):
            yield from [""] * bool(column)
            rows = [term.derivatives[column].values or () for term in self.weights.terms]
            if len({len(row) for row in rows}) > 1:
                text = f"not all numbers of ∂{symbol(self.explained.roots)}/∂{end.name} are known"
                yield from self.explained.wrapped(text, BAD)
                continue
            yield from self._matrix(rows, end)
            if self.weights.is_given:
                terms = self.weights.terms
                scaled = (_scaled(one.weight, one.derivatives[column]).values for one in terms)
                product = _row_of(total([row or () for row in scaled]) or ())
                given = _row_of([term.weight for term in terms])
                yield from self.explained.entry("", f"v @ J = {given} @ J = {product}", "bold")

    def _matrix(self, rows: Sequence[Sequence[Number]], end: Goal) -> Iterator[str]:
        """Numbered columns, as many side by side as there is room for, and the others below."""
        explained, label = self.explained, self.explained.roots
        first = re.fullmatch("∂(.+)/∂(.+)", visible(self.graph.roots[0].label))
        second = ""
        if first is not None:
            by = f" and {end.name}" if end.name != first[2] else ""
            what = "second derivatives" if by else "Hessian"
            second = f", the {what} of {first[1]} by {first[2]}{by}"
        text = f"J = ∂{symbol(label)}/∂{end.name}{second}, {len(rows)} × {len(rows[0])}: "
        text += f"a row for each element of {label}, a column for each of {end.name}"
        yield from explained.wrapped(text, "bold")
        labels = [explained.glyphs.text(explained.element(term)) for term in self.weights.terms]
        lead, shape = INDENT + max(map(cells, labels)), end.tensor.shape
        heads = [f"[{index_of(place, shape)}]" if shape else "" for place in range(len(rows[0]))]
        texts = zip(heads, *(map(numbers.element, row) for row in rows), strict=True)
        columns = [[text.rjust(max(map(cells, one))) for text in one] for one in texts]
        while columns:
            ends = accumulate((len(GAP) + cells(one[0]) for one in columns), initial=lead)
            fitting = max(sum(end <= explained.options.width for end in ends) - 1, 1)
            beside, columns = columns[:fitting], columns[fitting:]
            head, *lines = (GAP + GAP.join(line) for line in zip(*beside, strict=True))
            if shape:
                yield explained.paint(" " * lead + head, "dim")
            for name, line in zip(labels, lines, strict=True):
                yield explained.paint(" " * INDENT + name.ljust(lead - INDENT), "dim") + line

    # ------------------------------------------------------------------ the table of one leaf

    def _table(self, column: int, end: Goal) -> Iterator[str]:
        """The table of one leaf; where it is too wide, with norms and short titles."""
        explained = self.explained
        name = end.name
        one = explained.element(self.weights.terms[0])
        several = f"{symbol(explained.root_label(0))}[i]" if len(self.graph.roots) == 1 else "root"
        each = one if self.weights.total == 1 else several
        weight = "weight" if self.weights.total == 1 else "v[i]"
        slope = f"∂{each}/∂{name}"
        room = explained.options.width - INDENT
        titles = (each, weight, slope, f"{weight} × {slope}")
        rows = [titles, *self._rows(column, end)]
        if _width(rows) > room:
            yield from explained.wrapped(f"derivative: {slope}", indent=INDENT)
            titles = (each, weight, "derivative", f"{weight} × derivative")
            rows = [titles, *self._rows(column, end, norms=True)]
        columns = [Column(title, right=place > 0) for place, title in enumerate(titles)]
        styles = [*[""] * len(self.weights.terms), "bold"]
        styled = zip(rows[1:], styles, strict=False)
        cells_of = ([Part(text, style) for text in row] for row, style in styled)
        yield from explained.table(columns, cells_of, INDENT)

    def _rows(self, column: int, end: Goal, norms: bool = False) -> Iterator[tuple[str, ...]]:
        """A row for each term, and the sum."""

        def amount_of(amount: Amount) -> str:
            shown = Amount(amount.norm) if norms else amount
            return self.explained.amount(shown, end.tensor)

        for term in self.weights.terms:
            slope = term.derivatives[column]
            scaled = amount_of(_scaled(term.weight, slope))
            yield (
                self.explained.element(term),
                numbers.element(term.weight),
                amount_of(slope),
                scaled,
            )
        label = "sum = v @ J" if self.weights.total > 1 else "gradient"
        added, arrived = self._added(column), end.gradient
        if added is not None:
            yield label, "", "", amount_of(Amount(math.hypot(*added), tuple(added)))
        elif arrived is not None and arrived.norm is not None and not self.explained.is_hooked:
            yield label, "", "", amount_of(Amount(arrived.norm))

    def _added(self, column: int) -> list[float] | None:
        scaled = [_scaled(term.weight, term.derivatives[column]) for term in self.weights.terms]
        rows = [one.values for one in scaled]
        known = [row for row in rows if row is not None]
        return total(known) if len(known) == len(rows) else None


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    """Cells that a table of these rows takes."""
    columns = zip(*rows, strict=True)
    return sum(max(map(cells, column)) + len(GAP) for column in columns) - len(GAP)


def _scaled(weight: Number, amount: Amount) -> Amount:
    factor = float(weight)
    values = None if amount.values is None else tuple(factor * float(v) for v in amount.values)
    return Amount(abs(factor) * float(amount.norm), values)
