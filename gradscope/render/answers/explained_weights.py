"""The gradient argument as weights, in words, and the Jacobian whose rows it weighs.

Must not know of steps or paths."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from gradscope.escaping import visible
from gradscope.model.explanation import End, Weights
from gradscope.render.answers.explained import (
    BAD,
    INDENT,
    UNNAMED,
    Explained,
    index_of,
    symbol,
    total,
)
from gradscope.render.words import numbers
from gradscope.render.words.table import GAP
from gradscope.render.words.text import cells
from gradscope.words import either

MOST_IN_SUM = 4
"""Terms that the sum is written out with."""


class WeightWriter:
    """Writes what the gradient that was fed in means, and what it does."""

    def __init__(self, explained: Explained, weights: Weights) -> None:
        self.explained = explained
        self.weights = weights
        self.terms = weights.terms
        self.graph = explained.graph
        self.label = explained.roots
        self.v = explained.weight or "v"
        self.product = f"{self.v} @ J"

    def lines(self) -> Iterator[str]:
        """The words, then the Jacobian by each tensor that is explained."""
        explained, weights = self.explained, self.weights
        if weights.why:
            text = f"The weights cannot be shown, because {weights.why}."
            yield from (*explained.wrapped(text, BAD), "")
            return
        if not weights.total:
            has = "has no element" if len(self.graph.roots) == 1 else "have no elements"
            text = f"{has}, so there is nothing to weigh: every gradient is 0."
            yield from (*explained.wrapped(f"{self.label} {text}"), "")
            return
        if weights.is_given:
            yield from (*(self._words() if explained.weight else self._start()), "")
        if explained.answer.jacobian or explained.weight:
            for column, end in enumerate(explained.answer.ends):
                yield from self._jacobian(column, end)
        if not weights.is_given:
            way = either("--gradient V", "gradient=v")
            text = f"{way} gives each row a weight, as backward does: {self.product}"
            yield from (*explained.wrapped(text, "dim"), "")

    # ------------------------------------------------------------------ in words

    def _start(self) -> list[str]:
        start = "1" if self.label == UNNAMED else f"∂{self.label}/∂{self.label} = 1"
        return self.explained.wrapped(f"{self.label} is one number: backward starts with {start}.")

    def _words(self) -> Iterator[str]:
        explained, terms, label = self.explained, self.terms, self.label
        if self.weights.total == 1 and terms:
            given = numbers.element(terms[0].weight)
            text = f"{label} is one number, and the gradient given, {given}, is its weight."
        else:
            have = "has" if len(self.graph.roots) == 1 else "have"
            text = f"{label} {have} {self.weights.total:,} elements. The gradient given holds a "
            text += f"weight {self.v}[i] for each of them{self._given()}."
        yield from explained.wrapped(f"{text} Backward computes the derivative of")
        yield from explained.wrapped(f"L = {self._sum()}", "bold", indent=4)
        each = [f"{numbers.element(t.weight)} is ∂L/∂{explained.element(t)}" for t in terms[:3]]
        each = each or [f"{self.v}[i] is ∂L/∂{symbol(label)}[i]"]
        more = ", and so on" if len(terms) > len(each) else ""
        text = f"So {', '.join(each)}{more}: how much L changes with "
        text += f"{'that element' if self.weights.total > 1 else 'it'}. L need not exist here: in "
        text += f"a training it is the loss, and what comes after {label} sends these weights back."
        yield from explained.wrapped(f"{text}{self._special()}")

    def _given(self) -> str:
        if self.terms:
            weights = [term.weight for term in self.terms]
            return f": {self.v} = {numbers.tensor(weights, (len(weights),), 'float32')}"
        backward = self.explained.backward
        norms = [backward.gradients[entry].norm for entry in backward.seeds] if backward else []
        if not norms or None in norms:
            return ""
        return f", ‖{self.v}‖ = {numbers.number(math.hypot(*(float(one or 0) for one in norms)))}"

    def _sum(self) -> str:
        if not self.terms:
            label = symbol(self.explained.root_label(0))
            return f"({self.v} * {label}).sum()" + " + …" * (len(self.graph.roots) > 1)
        terms = [term for term in self.terms if float(term.weight)] or self.terms[:1]
        parts = [
            f"{numbers.element(term.weight)} × {self.explained.element(term)}"
            for term in terms[:MOST_IN_SUM]
        ]
        left = len(terms) - len(parts)
        more = f" + … ({left:,} more)" if left > 0 else ""
        return " + ".join(parts).replace("+ -", "- ") + more

    def _special(self) -> str:
        """What all ones, and a single one, are used for."""
        weights = [float(term.weight) for term in self.terms]
        if len(weights) > 1 and {*weights} == {1.0}:
            whole = f", {symbol(self.label)}.sum()" if len(self.graph.roots) == 1 else ""
            return f" All weights are 1 here, so L is the sum of all elements{whole}."
        if len(weights) > 1 and sorted(weights) == [0.0] * (len(weights) - 1) + [1.0]:
            one = self.explained.element(self.terms[weights.index(1.0)])
            return f" A single 1 picks one row of the Jacobian, here that of {one}."
        return ""

    # ------------------------------------------------------------------ the Jacobian

    def _jacobian(self, column: int, end: End) -> Iterator[str]:
        """The Jacobian by one tensor, the weight beside each row, and below it their product; not
        of a tensor of many numbers."""
        explained, terms = self.explained, self.terms
        rows = [term.derivatives[column] for term in terms]
        known = [row.values for row in rows if row.values is not None]
        if len(known) < len(rows) or not known:
            return
        name, root = explained.name(end.node), symbol(self.label)
        root = f"({root})" if len(self.graph.roots) > 1 else root
        if len({len(row) for row in known}) > 1:
            text = f"not all numbers of ∂{root}/∂{name} are known"
            yield from (*explained.wrapped(text, BAD), "")
            return
        shape = explained.tensor(end).shape
        first, rows_of = ["", *map(explained.element, terms)], [*known]
        weights = [float(term.weight) for term in terms]
        if self.weights.is_given:
            scaled = [
                [weight * float(one) for one in row]
                for weight, row in zip(weights, known, strict=True)
            ]
            first.append(self.product)
            rows_of.append(tuple(total(scaled) or ()))
        texts = zip(*(numbers.each(row, rows[0].dtype) for row in rows_of), strict=True)
        columns = [[index_of(at, shape), *one] for at, one in enumerate(texts)]
        size = f"{self.weights.total} × {len(columns)}"
        product = f"; {self.product} is what {name} gets: each row times its weight, added up"
        title = f"J = ∂{root}/∂{name}{self._second(name)}, {size}: a row for each element of "
        title += f"{self.label}, a column for each of {name}"
        title += product * (self.weights.is_given and not column)
        yield from explained.wrapped(title, "bold")
        if self.weights.is_given:
            columns.insert(0, [f"{self.v}[i]", *map(numbers.element, weights), ""])
        yield from self._matrix(first, columns)
        yield ""

    def _second(self, name: str) -> str:
        """What the Jacobian of a derivative is called."""
        second = re.fullmatch("∂(.+)/∂(.+)", visible(self.graph.roots[0].label))
        if second is None:
            return ""
        by = f" and {name}" if name != second[2] else ""
        what = "second derivatives" if by else "Hessian"
        return f", the {what} of {second[1]} by {second[2]}{by}"

    def _matrix(self, first: Sequence[str], columns: Sequence[Sequence[str]]) -> Iterator[str]:
        """Columns below their titles, as many side by side as there is room for, and the others
        below; the last line is the product."""
        explained = self.explained
        labels = [explained.glyphs.text(text) for text in first]
        lead = INDENT + max(map(cells, labels))
        padded = [[text.rjust(max(map(cells, one))) for text in one] for one in columns]
        while padded:
            ends = accumulate((len(GAP) + cells(one[0]) for one in padded), initial=lead)
            fitting = max(sum(end <= explained.options.width for end in ends) - 1, 1)
            beside, padded = padded[:fitting], padded[fitting:]
            for number, (label, *texts) in enumerate(zip(labels, *beside, strict=True)):
                text = " " * INDENT + label.ljust(lead - INDENT) + GAP + GAP.join(texts)
                style = "" if number else "dim"
                yield explained.paint(text.rstrip(), "bold" if label == self.product else style)
