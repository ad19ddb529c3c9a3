"""The paths to each leaf, what comes along each, and their sum; and what ``.grad`` becomes.

Must not know of steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from gradscope.model.explanation import Path, Ways, digits
from gradscope.notation.operands import bracketed
from gradscope.render.answers.explained import Explained, agree, total
from gradscope.render.answers.explained_step import BAD, MOST_NUMBERS
from gradscope.render.answers.explained_wording import Wording
from gradscope.render.words.text import cells, wrapped
from gradscope.words import count, option

MOST_PATHS = 6
"""Paths listed unless everything is asked for."""

LONGEST_PATH = 8
"""Nodes of a path that are named; longer ones leave out the middle."""


LONGEST_PRODUCT = 4
"""Lines of a product that are still followed; of a longer one the result must do."""


class Operands:
    """By which operand of a step a path goes on, where it could go by another."""

    def __init__(self, explained: Explained) -> None:
        self.explained = explained
        self.steps = {step.node: step for step in explained.answer.steps}
        self.used = False
        self._wordings: dict[int, Wording] = {}

    def mark(self, edge: int) -> str:
        """``u`` where the step gives the operand that letter; "" where there is only one way, or
        the node it leads to says which."""
        explained = self.explained
        place = explained.edge(edge)
        others = [one for one in explained.leaving[place.source] if one in explained.leading]
        step = self.steps.get(place.source)
        if step is None or len(others) < 2:
            return ""
        if step.node not in self._wordings:
            self._wordings[step.node] = Wording(explained, step)
        letter = self._wordings[step.node].letter(place.slot)
        self.used |= bool(letter)
        return letter


class LeafWriter:
    """Writes how one leaf gets its gradient."""

    def __init__(self, explained: Explained, ways: Ways, operands: Operands) -> None:
        self.explained = explained
        self.operands = operands
        self.ways = ways
        self.end = explained.end(ways.leaf)
        self.shape = self.end.tensor.shape
        self.total = self.end.gradient

    def lines(self) -> Iterator[str]:
        """The leaf, its paths, the sum."""
        explained = self.explained
        place = explained.scene.place(self.end.origin)
        total = explained.gradient(self.total, self.shape)
        paths = f"{_count(self.ways.count)} path{'s' * (self.ways.total != 1)}"
        made = f"  ({place})" if place else ""
        yield explained.fitted(
            f"{self.end.sign} {self.end.name} gets {total} · {paths}{made}", "bold"
        )
        if self.ways.why:
            text = f"cannot be shown, because {self.ways.why}"
            yield from explained.entry("paths", text, BAD)
        else:
            yield from self._paths()
        yield from self._accumulated()

    def _paths(self) -> Iterator[str]:
        explained = self.explained
        every = explained.everything or len(self.ways.paths) <= MOST_PATHS + 1
        shown = self.ways.paths if every else self.ways.paths[:MOST_PATHS]
        for path in shown:
            yield from self._path(path)
        left = self.ways.total - len(shown)
        if not left:
            yield from self._sum(shown)
            return
        rest = self._rest(len(shown))
        noun = "path" if left == 1 else "paths"
        brings = f" {'brings' if left == 1 else 'bring'} {rest}" if rest else ""
        more = f": {option('all')}" if len(shown) < len(self.ways.paths) else ""
        yield from explained.entry("rest", f"the other {_count(digits(left))} {noun}{brings}{more}")

    def _rest(self, shown: int) -> str:
        """What the paths that are not shown bring together, "" where that is not known."""
        rest = self.ways.rest
        hidden = [path.contribution for path in self.ways.paths[shown:]]
        amounts = [*hidden, rest] if rest is not None else hidden
        if len(amounts) == 1:
            return self.explained.amount(amounts[0], self.end.tensor)
        rows = [one.values for one in amounts if one.values is not None]
        if len(rows) < len(amounts):
            return ""  # norms do not add up
        tensor = self.end.tensor
        return self.explained.values(total(rows), tensor.shape, tensor.dtype)

    def _sum(self, shown: tuple[Path, ...]) -> Iterator[str]:
        explained = self.explained
        values = [path.contribution.values for path in shown]
        rows = [row for row in values if row is not None]
        arrived = explained.gradient(self.total, self.shape)
        added = total(rows)
        if added is None or len(rows) < len(shown):
            return  # norms do not add up
        if self.total is None or self.total.values is None:
            return
        tensor = self.end.tensor
        terms = [explained.amount(path.contribution, tensor) for path in shown]
        found = explained.values(added, self.shape, tensor.dtype) or "their sum"
        if not agree(added, self.total.values, explained.precision):
            it = "the leaf" if self.end.leaf is not None else self.end.name
            other = "hooks of the program made it" if explained.is_hooked else f"{it} got"
            text = f"{' + '.join(terms)} = {found}; {other} {arrived}"
            yield from explained.entry("sum", text, BAD)
        elif len(shown) > 1 and "‖" not in "".join(terms):
            yield from explained.entry("sum", f"{' + '.join(terms)} = {arrived}", "bold")

    def _path(self, path: Path) -> Iterator[str]:
        explained = self.explained
        brought = explained.amount(path.contribution, self.end.tensor)
        route = self._route(path)
        product = self._product(path)
        text = f"{product} = {brought}" if product else brought
        gap = "    "
        width = explained.options.width - 13
        if cells(route) + len(gap) + cells(text) <= width:
            yield from explained.entry("", route + gap + text)
            return
        yield from explained.entry("", route)
        parts = wrapped(explained.glyphs.text(text), width - len(gap))
        for part in parts if len(parts) <= LONGEST_PRODUCT else [brought]:
            yield from explained.entry("", gap + part)

    def _route(self, path: Path) -> str:
        graph = self.explained.graph
        nodes = [graph.roots[path.root].node, *(graph.edges[edge].target for edge in path.edges)]
        names = [self.explained.name(node) for node in nodes]
        half = LONGEST_PATH // 2
        hidden = range(half, len(names) - half) if len(names) > LONGEST_PATH else range(0)
        text = names[0]
        for number, name in enumerate(names[1:]):
            if number + 1 == hidden.start and hidden:
                text += f" → … {count(len(hidden), 'node')} …"
            elif number + 1 not in hidden:
                mark = "" if number in hidden else self.operands.mark(path.edges[number])
                text += f" {mark}→ {name}"
        return text

    def _product(self, path: Path) -> str:
        """The gradient given times the derivative of every step, where all are known."""
        explained = self.explained
        graph = explained.graph
        root = graph.roots[path.root]
        if explained.backward is None or not path.edges:
            return ""
        seed = explained.backward.gradients[explained.backward.seeds[path.root]]
        shape = explained.shape(root.node, root.output)
        factors = [explained.values(seed.values, shape, seed.dtype)]
        signs = []
        output = root.output
        for edge in path.edges:
            local = explained.locals.get((edge, output))
            if local is None:
                return ""
            if len(local.values) > MOST_NUMBERS:
                return ""
            factors.append(explained.local(local))
            signs.append("×" if local.diagonal else "·")
            output = graph.edges[edge].output
        if not all(factors):
            return ""
        parts = [factors[0]]
        for (sign, factor), alike in groupby(zip(signs, factors[1:], strict=True)):
            times = len(list(alike))
            is_power = sign == "×" and times > 2 and factor != "1" and not explained.everything
            shown = [f"{bracketed(factor)}^{times}"] if is_power else [factor] * times
            parts += (f"{sign} {one}" for one in shown)
        return " ".join(parts)

    def _accumulated(self) -> Iterator[str]:
        """``3 + 3 = 6``: what was there before, what came, what it is now."""
        backward = self.explained.backward
        leaf = self.end.leaf
        entry = backward.accumulations[leaf] if backward and leaf is not None else None
        if backward is None or entry is None or entry.after is None:
            return
        after = self.explained.gradient(backward.gradients[entry.after], self.shape)
        if entry.before is None:
            yield from self.explained.entry(".grad", f"was None and is now {after}")
            return
        before = self.explained.gradient(backward.gradients[entry.before], self.shape)
        new = self.explained.gradient(backward.gradients[entry.new], self.shape)
        text = f"{before} + {new} = {after}: what was there before, and what came now"
        yield from self.explained.entry(".grad", text, "bold")


def _count(number: str) -> str:
    """A number of any length, readable."""
    if len(number) <= 9:
        return f"{int(number):,}"
    return f"about {number[0]}.{number[1]}e{len(number) - 1}"
