"""The paths to each leaf, what comes along each, and their sum; and what ``.grad`` becomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

from gradscope.model.explanation import End, Path
from gradscope.render.answers.explained import BAD, INDENT, LABEL, Explained, agree, total
from gradscope.render.words import numbers
from gradscope.render.words.text import wrapped
from gradscope.words import count, option

MOST_PATHS = 6
"""Paths listed unless everything is asked for."""

LONGEST_PATH = 8
"""Nodes of a path that are named; of a longer one its ends, and where paths part."""

LONGEST_PRODUCT = 4
"""Lines of a product that is still followed; of a longer one the result must do."""


class PathsWriter:
    """Writes how one tensor gets its gradient."""

    def __init__(self, explained: Explained, end: End) -> None:
        self.explained = explained
        self.end = end
        self.tensor = explained.tensor(end)
        self.gradient = explained.arrived(end)
        self.arrived = explained.gradient(self.gradient, self.tensor.shape)
        self.count = float(end.count or 0)
        self.shown = self._shown()

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
            yield from explained.entry("paths", f"cannot be shown, because {end.why}", BAD)
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
            rows = [one.values for one in amounts if one.values is not None]
            added = total(rows) if len(rows) == len(amounts) else None  # norms do not add up
            rest = self.explained.values(
                added, self.tensor.shape, amounts[0].dtype if amounts else ""
            )
            if len(amounts) == 1:
                rest = self.explained.gradient(amounts[0], self.tensor.shape)
            rest = "0" if is_nothing else rest
            others = "path" if left == 1 else f"{_count(left)} paths"
            brings = f" {'brings' if left == 1 else 'bring'} {rest}" if rest else ""
            more = f": {option('all')}" if hidden else ""
            text = f"the{' other' if self.shown else ''} {others}{brings}{more}"
            yield from self.explained.entry("rest", text)
        if is_nothing:
            yield from self._sum()

    def _sum(self) -> Iterator[str]:
        explained, shown, tensor = self.explained, self.shown, self.tensor
        rows = [path.contribution.values for path in shown if path.contribution.values is not None]
        added = total(rows)
        if not rows or added is None or len(rows) < len(shown):
            return  # norms do not add up
        if self.gradient is None or self.gradient.values is None:
            return
        terms = " + ".join(explained.gradient(path.contribution, tensor.shape) for path in shown)
        if not agree(added, self.gradient.values, explained.precision):
            found = (
                explained.values(added, tensor.shape, shown[0].contribution.dtype) or "their sum"
            )
            name = explained.name(self.end.node)
            other = "hooks of the program made it" if self._is_hooked else f"{name} got"
            text = f"{terms} = {found}; {other} {self.arrived}"
            yield from explained.entry("sum", text, BAD)
        elif len(shown) > 1 and "‖" not in terms:
            yield from explained.entry("sum", f"{terms} = {self.arrived}", "bold")

    @property
    def _is_hooked(self) -> bool:
        """Whether hooks of the program replaced a gradient on its way."""
        return self.explained.backward is not None and bool(self.explained.backward.altered)

    # ------------------------------------------------------------------ one path

    def _path(self, path: Path) -> Iterator[str]:
        explained = self.explained
        brought = explained.gradient(path.contribution, self.tensor.shape)
        product = self._product(path)
        text = f"{product} = {brought}" if product else brought
        width = explained.options.width - INDENT - LABEL
        is_short = len(wrapped(explained.glyphs.text(text), width)) <= LONGEST_PRODUCT
        yield from explained.beside("", self._route(path), text if is_short else brought)

    def _route(self, path: Path) -> str:
        """The nodes by their names; of a long path its ends, and where it leaves another, so that
        no two paths read alike."""
        graph, last = self.explained.graph, len(path.edges) - 1
        text, left = self.explained.name(graph.roots[path.root].node), 0
        named = set(range(len(path.edges))) if last < LONGEST_PATH - 1 else {last - 1, last}
        for place, edge in enumerate(path.edges):
            if len(self._ways_on[graph.edges[edge].source]) > 1:
                named |= {place - 1, place}
        for place, edge in enumerate(path.edges):
            if place not in named:
                left += 1
                continue
            if left == 1:  # its name takes no more room than to say that it is there
                text += f" → {self.explained.to(path.edges[place - 1])}"
            text += f" → … {count(left, 'node')} …" if left > 1 else ""
            text += f" → {self.explained.to(edge)}"
            left = 0
        return text

    @cached_property
    def _ways_on(self) -> dict[int, set[int]]:
        """By which edges the listed paths go on from each node."""
        found: dict[int, set[int]] = {}
        for edge in (edge for path in self.shown for edge in path.edges):
            found.setdefault(self.explained.edge(edge).source, set()).add(edge)
        return found

    def _product(self, path: Path) -> str:
        """The gradient given times the derivative of every step, where all are known."""
        explained = self.explained
        root = explained.graph.roots[path.root]
        if explained.backward is None or not path.edges:
            return ""
        seed = explained.backward.gradients[explained.backward.seeds[path.root]]
        outputs = [root.output, *(explained.edge(edge).output for edge in path.edges)]
        along = [explained.locals.get(one) for one in zip(path.edges, outputs, strict=False)]
        known = [one for one in along if one is not None]
        shape = explained.shape(root.node, root.output)
        return explained.product(seed, shape, known) if len(known) == len(along) else ""

    # ------------------------------------------------------------------ .grad

    def _accumulated(self) -> Iterator[str]:
        """``3 + 3 = 6``: what was there before, what came, what it is now."""
        backward, leaf = self.explained.backward, self.end.leaf
        entry = backward.accumulations[leaf] if backward and leaf is not None else None
        if backward is None or entry is None or entry.after is None:
            return
        entries = (entry.before or 0, entry.new, entry.after)
        infos = [backward.gradients[one] for one in entries]
        before, came, after = (self.explained.gradient(x, self.tensor.shape) for x in infos)
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
