"""An explanation as text: the weights, the steps from the root on, and the paths to each leaf.

Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import mul

from gradscope.escaping import visible
from gradscope.model.explanation import End, Path, Weights
from gradscope.model.report import GradientInfo
from gradscope.notation.textbook import SIGNS
from gradscope.render.answers.explained import (
    INDENT,
    LABEL,
    UNNAMED,
    Explained,
    agree,
    index_of,
    symbol,
    total,
)
from gradscope.render.answers.explained_step import StepWriter, as_table
from gradscope.render.drawing.scale import BAD_INK
from gradscope.render.drawing.verdict import alarm
from gradscope.render.words import numbers
from gradscope.render.words.table import GAP
from gradscope.render.words.text import cells, wrapped
from gradscope.words import count, either, joined, listed, option

LISTED = 4
"""Other leaves named as examples."""


class _ExplanationWriter(Explained):
    def lines(self) -> Iterator[str]:
        """What is explained, the weights, the steps, the paths."""
        answer = self.answer
        yield from self._head()
        if answer.weights is not None:
            yield from WeightWriter(self, answer.weights).lines()
        if answer.steps:
            yield from self._steps()
        if any(end.count is not None for end in answer.ends):
            made = answer.ends[0].leaf is None
            by = f"What {self.name(answer.ends[0].node)} gets" if made else "Leaf by leaf"
            yield self.fitted(f"{by}: what comes along each path, and the sum", "bold")
            for end in answer.ends:
                yield from PathsWriter(self, end).lines()

    def _steps(self) -> Iterator[str]:
        """All steps; first what signs stand for, here and in the paths."""
        if self.is_long:
            lines = list(as_table(self))
        else:
            steps = (StepWriter(self, one) for one in self.answer.steps)
            lines = [line for one in steps for line in one.lines()]
        row = ", a row each" * self.is_long
        title = f"Step by step{row}: upstream × local derivative = what is sent on"
        if self.backward is None:
            title = f"Step by step{row}: the derivative of each operation"
        yield self.fitted(title, "bold")
        text = "".join(lines)
        for sign, meaning in SIGNS.items():
            if sign in text:
                yield from self.wrapped(meaning, "dim")
        yield from (*lines, *self._left_out(), "")

    def _left_out(self) -> Iterator[str]:
        """How many steps are on the ways to what is explained, and not told; how to see all."""
        between = {self.edge(number).source for number in self.leading}
        left = len(between) - len(self.answer.steps)
        what = count(left, "more step") if left > 0 else "every step with its numbers"
        every = "" if self.everything else f"{option('all')}, "
        if left > 0 or self.is_long:
            yield from self.wrapped(f"{what}: {every}one of them: {option('node', 'ID')}", "dim")

    def _head(self) -> Iterator[str]:
        answer, leaves = self.answer, self.graph.leaves
        subject = f"node {answer.node} explained"
        if answer.node is None:
            ends = joined(self.name(end.node) for end in answer.ends)
            subject = f"from {self.roots} to {ends}"
        size = count(len(leaves), "leaf")
        yield self.headed(self.report.meta.target, self.scene.size(), size, subject)
        if told := alarm(self.scene):
            yield from self.wrapped(f"{self.glyphs.bad} {told}")
        for note in self.report.notes:
            yield from self.wrapped(visible(note))
        known = {end.node for end in answer.ends}
        others = [leaf for leaf in leaves if leaf.names and leaf.node not in known]
        if others and answer.node is None and not answer.asked:
            names = listed((visible(leaf.names[0]) for leaf in others), LISTED)
            other = option("leaf", "NAME")
            text = f"This leaf has the longest path. For another one: {other} ({names})"
            yield from self.wrapped(text)
        yield ""


render = _ExplanationWriter.render


# ---------------------------------------------------------------- the weights


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
            yield from (*explained.wrapped(text, BAD_INK), "")
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
        explained, terms, is_given = self.explained, self.terms, self.weights.is_given
        found = [term.derivatives[column] for term in terms]
        rows = [[*map(float, one.values)] for one in found if one.values is not None]
        if not rows or len(rows) < len(found) or len({*map(len, rows)}) > 1:
            return
        name, root = explained.name(end.node), symbol(self.label)
        root = f"({root})" if len(self.graph.roots) > 1 else root
        shape = explained.tensor(end).shape
        first = ["", *map(explained.element, terms), *[self.product] * is_given]
        weights = [float(term.weight) for term in terms]
        if is_given:
            rows.append([sum(map(mul, weights, one)) for one in zip(*rows, strict=True)])
        texts = zip(*(numbers.each(row, found[0].dtype) for row in rows), strict=True)
        columns = [[index_of(at, shape), *one] for at, one in enumerate(texts)]
        size = f"{self.weights.total} × {len(columns)}"
        product = f"; {self.product} is what {name} gets: each row times its weight, added up"
        title = f"J = ∂{root}/∂{name}{self._second(name)}, {size}: a row for each element of "
        title += f"{self.label}, a column for each of {name}"
        title += product * (is_given and not column)
        yield from explained.wrapped(title, "bold")
        if is_given:
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


# ---------------------------------------------------------------- the paths


MOST_PATHS = 6
"""Paths listed unless everything is asked for."""

LONGEST_PATH = 8
"""Nodes of a path that are named; of a longer one its ends, and where paths part."""

LONGEST_PRODUCT = 4
"""Lines of a product that is still followed; of a longer one the result must do."""


class PathsWriter:
    """Writes how one tensor gets its gradient; ``ways_on`` counts the edges by which the listed
    paths go on from each node."""

    def __init__(self, explained: Explained, end: End) -> None:
        self.explained = explained
        self.end = end
        self.tensor = explained.tensor(end)
        self.gradient: GradientInfo | None = None
        if explained.backward is not None:
            brought, at, leaf = explained.backward.brought, explained.backward.at, end.leaf
            self.gradient = at(end.node, end.output) if leaf is None else brought(leaf)
        self.arrived = self.told(self.gradient) if self.gradient else "?"
        self.count = float(end.count or 0)
        self.shown = self._shown()
        edges = {edge for path in self.shown for edge in path.edges}
        self.ways_on = Counter(explained.edge(edge).source for edge in edges)

    def told(self, info: GradientInfo) -> str:
        """A gradient of the tensor."""
        return self.explained.gradient(info, self.tensor).text

    def _shown(self) -> Sequence[Path]:
        """The paths that are listed: those that bring something."""
        if self.explained.everything:
            return self.end.paths
        found = [path for path in self.end.paths if path.contribution.state != "zero"]
        # One path more takes no more room than to say that there is one.
        limit = MOST_PATHS + (self.count == len(found) == MOST_PATHS + 1)
        return found[:limit] or self.end.paths[:1]

    def lines(self) -> Iterator[str]:
        """The tensor, its paths, the sum."""
        explained, end = self.explained, self.end
        is_missed = self.gradient is not None and self.gradient.state == "not reached"
        leaf = None if end.leaf is None else explained.graph.leaves[end.leaf]
        place = explained.scene.place(leaf.origin if leaf else explained.graph.nodes[end.node].line)
        sign = explained.glyphs.op if leaf is None else explained.glyphs.leaf
        text = f"{sign} {explained.name(end.node)} gets {self.arrived}"
        if is_missed and explained.backward:
            failed = explained.backward.error
            text += ": the call failed before" if failed else ": inputs= names other tensors"
        text += f" · {_count(self.count)} path{'s' * (self.count != 1)}"
        yield explained.fitted(text + f"  ({place})" * bool(place), "bold")
        if end.why:
            yield from explained.entry("paths", f"cannot be shown, because {end.why}", BAD_INK)
        else:
            if is_missed:
                yield explained.fitted(" " * INDENT + "what would come:", "dim")
            for path in self.shown:
                yield from self._path(path)
            yield from self._rest()
        yield from self._accumulated()

    def _rest(self) -> Iterator[str]:
        """What the paths that are not listed bring together; the sum, where it can be said."""
        left = self.count - len(self.shown)
        hidden = [path.contribution for path in self.end.paths if path not in self.shown]
        amounts = [*hidden, self.end.rest] if self.end.rest is not None else hidden
        is_nothing = all(one.state == "zero" for one in amounts)
        if left:
            added, dtype = (
                total([one.values for one in amounts]),
                amounts[0].dtype if amounts else "",
            )
            rest = self.explained.values(added, self.tensor.shape, dtype)  # norms do not add up
            if len(amounts) == 1:
                rest = self.told(amounts[0])
            rest = "0" if is_nothing else rest
            others = "path" if left == 1 else f"{_count(left)} paths"
            brings = f" {'brings' if left == 1 else 'bring'} {rest}" if rest else ""
            more = f": {option('all')}" if hidden else ""
            text = f"the{' other' if self.shown else ''} {others}{brings}{more}"
            yield from self.explained.entry("rest", text)
        if is_nothing:
            yield from self._sum()

    def _sum(self) -> Iterator[str]:
        explained, backward = self.explained, self.explained.backward
        brought = [path.contribution for path in self.shown]
        added = total([one.values for one in brought])
        if added is None or self.gradient is None or self.gradient.values is None:
            return  # norms do not add up
        terms = " + ".join(map(self.told, brought))
        if not agree(added, self.gradient.values, explained.precision):
            found = explained.values(added, self.tensor.shape, brought[0].dtype) or "their sum"
            is_hooked = backward is not None and backward.altered
            got = f"{explained.name(self.end.node)} got"
            other = "hooks of the program made it" if is_hooked else got
            yield from explained.entry("sum", f"{terms} = {found}; {other} {self.arrived}", BAD_INK)
        elif len(brought) > 1 and "‖" not in terms:
            yield from explained.entry("sum", f"{terms} = {self.arrived}", "bold")

    # ------------------------------------------------------------------ one path

    def _path(self, path: Path) -> Iterator[str]:
        explained = self.explained
        brought = self.told(path.contribution)
        product = self._product(path)
        text = f"{product} = {brought}" if product else brought
        width = explained.options.width - INDENT - LABEL
        is_short = len(wrapped(explained.glyphs.text(text), width)) <= LONGEST_PRODUCT
        yield from explained.beside("", self._route(path), text if is_short else brought)

    def _route(self, path: Path) -> str:
        """The nodes by their names; of a long path its ends, and where it leaves another, so that
        no two paths read alike."""
        graph, last = self.explained.graph, len(path.edges) - 1
        named = {last - 1, last} if last >= LONGEST_PATH - 1 else {*range(last + 1)}
        for place, edge in enumerate(path.edges):
            if self.ways_on[graph.edges[edge].source] > 1:
                named |= {place - 1, place}
        route = [self.explained.name(graph.roots[path.root].node)]
        for is_named, run in groupby(enumerate(path.edges), lambda step: step[0] in named):
            names = [self.explained.to(edge) for _, edge in run]
            # The name of one takes no more room than to say that it is there.
            is_told = is_named or len(names) == 1
            route += names if is_told else [f"… {count(len(names), 'node')} …"]
        return " → ".join(route)

    def _product(self, path: Path) -> str:
        """The gradient given times the derivative of every step, where all are known, and that is
        what came: a backward of the program need not be linear."""
        explained, backward, graph = self.explained, self.explained.backward, self.explained.graph
        if backward is None or not path.edges:
            return ""
        root = graph.roots[path.root]
        given = backward.gradients[backward.seeds[path.root]]
        outputs = [root.output, *(graph.edges[edge].output for edge in path.edges)]
        along = [explained.locals.get(one) for one in zip(path.edges, outputs, strict=False)]
        made = explained.gradient(given, graph.nodes[root.node].output(root.output))
        row, text = explained.product(made, along)
        brought = path.contribution.values
        return "" if brought and not agree(row, brought, explained.precision) else text

    # ------------------------------------------------------------------ .grad

    def _accumulated(self) -> Iterator[str]:
        """``3 + 3 = 6``: what was there before, what came, what it is now."""
        backward, leaf = self.explained.backward, self.end.leaf
        entry = backward.accumulations[leaf] if backward and leaf is not None else None
        if backward is None or entry is None or entry.after is None:
            return
        entries = (entry.before or 0, entry.new, entry.after)
        infos = [backward.gradients[one] for one in entries]
        before, came, after = map(self.told, infos)
        text = f"{before} + {came} = {after}: what was there before, and what came now"
        if infos[1].state in ("none", "not reached"):
            text = f"stays {after}: nothing came"
        elif entry.before is None:
            text = f"was None and is now {after}"
        yield from self.explained.entry(".grad", text, "bold" * (entry.before is not None))


def _count(number: float) -> str:
    """A number of any size, readable."""
    if number < 1e9:
        return f"{number:,.0f}"
    return f"about {numbers.number(number)}" if math.isfinite(number) else "over 1e308"
