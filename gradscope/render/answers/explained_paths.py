"""The paths to each leaf, what comes along each, and their sum; and what ``.grad`` becomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from gradscope.model.explanation import Path, Ways, digits
from gradscope.render.answers.explained import BAD, INDENT, LABEL, Explained, agree, total
from gradscope.render.answers.explained_step import is_long
from gradscope.render.answers.explained_wording import Wording
from gradscope.render.words.text import cells, wrapped
from gradscope.words import count, option

MOST_PATHS = 6
"""Paths listed unless everything is asked for."""

LONGEST_PATH = 8
"""Nodes of a path that are named; of a longer one its ends, and where paths part."""

LONGEST_PRODUCT = 4
"""Lines of a product that is still followed; of a longer one the result must do."""

MARKS = "u→, v→: the operand of that step, named there, by which the path goes on"
NUMBERS = "[0]→, [1]→: by which operand of that step the path goes on, by its number"


def leaf_by_leaf(explained: Explained) -> Iterator[str]:
    """The lines of all leaves, below what they have in common."""
    told = [LeafWriter(explained, ways) for ways in explained.answer.ways]
    lines = [line for one in told for line in one.lines()]
    text = "what comes along each path, and the sum"
    by = f"What {explained.ends[0].name} gets" if explained.answer.tensor else "Leaf by leaf"
    yield explained.fitted(f"{by}: {text}", "bold")
    marks = "".join(mark for one in told for mark in one.marks)
    for sign, meaning in (("", MARKS if marks.strip("[]0123456789") else ""), ("[", NUMBERS)):
        if meaning and sign in marks:
            yield from explained.wrapped(meaning, "dim")
    yield from lines


class LeafWriter:
    """Writes how one leaf gets its gradient."""

    def __init__(self, explained: Explained, ways: Ways) -> None:
        self.explained = explained
        self.ways = ways
        self.end = explained.end(ways.leaf)
        self.shape = self.end.tensor.shape
        self.total = self.end.gradient
        self.shown = self._shown()
        self.marks: set[str] = set()

    def _shown(self) -> Sequence[Path]:
        """The paths that are listed: those that bring something."""
        if self.explained.everything:
            return self.ways.paths
        found = [path for path in self.ways.paths if float(path.contribution.norm)]
        # One path more takes no more room than to say that there is one.
        limit = MOST_PATHS + (self.ways.total == len(found) == MOST_PATHS + 1)
        return found[:limit] or self.ways.paths[:1]

    def lines(self) -> Iterator[str]:
        """The leaf, its paths, the sum."""
        explained = self.explained
        place = explained.scene.place(self.end.origin)
        total = explained.gradient(self.total, self.shape)
        if explained.backward and self.total is not None and self.total.state == "not reached":
            failed = explained.backward.error
            total += ": the call failed before" if failed else ": inputs= names other tensors"
        paths = f"{_count(self.ways.count)} path{'s' * (self.ways.total != 1)}"
        made = f"  ({place})" if place else ""
        text = f"{self.end.sign} {self.end.name} gets {total} · {paths}{made}"
        yield explained.fitted(text, "bold")
        if self.ways.why:
            text = f"cannot be shown, because {self.ways.why}"
            yield from explained.entry("paths", text, BAD)
        else:
            if "not reached" in total:
                yield explained.fitted(" " * INDENT + "what would come:", "dim")
            for path in self.shown:
                yield from self._path(path)
            yield from self._rest()
        yield from self._accumulated()

    def _rest(self) -> Iterator[str]:
        """What the paths that are not listed bring together; the sum, where it can be said."""
        left = self.ways.total - len(self.shown)
        hidden = [path.contribution for path in self.ways.paths if path not in self.shown]
        amounts = [*hidden, self.ways.rest] if self.ways.rest is not None else hidden
        if not left:
            yield from self._sum()
            return
        if len(amounts) == 1:
            rest = self.explained.amount(amounts[0], self.end.tensor)
        else:
            rows = [one.values for one in amounts if one.values is not None]
            added = total(rows) if len(rows) == len(amounts) else None  # norms do not add up
            tensor = self.end.tensor
            rest = self.explained.values(added, tensor.shape, tensor.dtype)
        if not any(float(one.norm) for one in amounts):
            rest = "0"
        others = "path" if left == 1 else f"{_count(digits(left))} paths"
        brings = f" {'brings' if left == 1 else 'bring'} {rest}" if rest else ""
        more = f": {option('all')}" if hidden else ""
        text = f"the{' other' if self.shown else ''} {others}{brings}{more}"
        yield from self.explained.entry("rest", text)
        if rest == "0":
            yield from self._sum()

    def _sum(self) -> Iterator[str]:
        explained, shown = self.explained, self.shown
        rows = [path.contribution.values for path in shown if path.contribution.values is not None]
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

    # ------------------------------------------------------------------ one path

    def _path(self, path: Path) -> Iterator[str]:
        explained = self.explained
        brought = explained.amount(path.contribution, self.end.tensor)
        route = self._route(path)
        product = self._product(path)
        text = f"{product} = {brought}" if product else brought
        gap = "    "
        width = explained.options.width - INDENT - LABEL
        if cells(route) + len(gap) + cells(text) <= width:
            yield from explained.entry("", route + gap + text)
            return
        yield from explained.entry("", route)
        parts = wrapped(explained.glyphs.text(text), width - len(gap))
        for part in parts if len(parts) <= LONGEST_PRODUCT else [brought]:
            yield from explained.entry("", gap + part)

    def _route(self, path: Path) -> str:
        """The nodes by their names; of a long path its ends, and where it leaves another, so that
        no two paths read alike."""
        graph = self.explained.graph
        nodes = [graph.roots[path.root].node, *(graph.edges[edge].target for edge in path.edges)]
        named = set(range(len(nodes)))
        if len(nodes) > LONGEST_PATH:
            named = {0, len(nodes) - 2, len(nodes) - 1}
            for place, edge in enumerate(path.edges):
                if len(self._ways_on[graph.edges[edge].source]) > 1:
                    named |= {place, place + 1}
        text = self.explained.name(nodes[0])
        left = 0
        for place, edge in enumerate(path.edges, 1):
            if place not in named:
                left += 1
                continue
            mark = "" if left else self._mark(edge)
            text += f" → … {count(left, 'node')} …" if left else ""
            text += f" {mark}→ {self.explained.name(nodes[place])}"
            left = 0
        return text

    @cached_property
    def _ways_on(self) -> dict[int, set[int]]:
        """By which edges the listed paths go on from each node."""
        found: dict[int, set[int]] = {}
        for edge in (edge for path in self.shown for edge in path.edges):
            found.setdefault(self.explained.edge(edge).source, set()).add(edge)
        return found

    def _mark(self, edge: int) -> str:
        """``u`` where the step gives the operand that letter, ``[0]`` where only its number tells
        two operands apart; "" where there is only one way, or the node it leads to says which."""
        explained = self.explained
        place = explained.edge(edge)
        others = [one for one in explained.leaving[place.source] if one in explained.leading]
        step = explained.steps.get(place.source)
        if step is None or len(others) < 2:
            return ""
        mark = "" if is_long(explained) else Wording(explained, step).letter(place.slot)
        if not mark and [explained.edge(one).target for one in others].count(place.target) > 1:
            mark = f"[{place.slot}]"
        self.marks |= {mark} - {""}
        return mark

    def _product(self, path: Path) -> str:
        """The gradient given times the derivative of every step, where all are known."""
        explained = self.explained
        root = explained.graph.roots[path.root]
        if explained.backward is None or not path.edges:
            return ""
        seed = explained.backward.gradients[explained.backward.seeds[path.root]]
        along = []
        output = root.output
        for edge in path.edges:
            if (edge, output) not in explained.locals:
                return ""
            along.append(explained.locals[edge, output])
            output = explained.edge(edge).output
        return explained.product(seed, explained.shape(root.node, root.output), along)

    # ------------------------------------------------------------------ .grad

    def _accumulated(self) -> Iterator[str]:
        """``3 + 3 = 6``: what was there before, what came, what it is now."""
        backward = self.explained.backward
        leaf = self.end.leaf
        entry = backward.accumulations[leaf] if backward and leaf is not None else None
        if backward is None or entry is None or entry.after is None:
            return
        after = self.explained.gradient(backward.gradients[entry.after], self.shape)
        new = backward.gradients[entry.new]
        if new.state in ("none", "not reached"):
            yield from self.explained.entry(".grad", f"stays {after}: nothing came")
            return
        if entry.before is None:
            yield from self.explained.entry(".grad", f"was None and is now {after}")
            return
        before = self.explained.gradient(backward.gradients[entry.before], self.shape)
        came = self.explained.gradient(new, self.shape)
        text = f"{before} + {came} = {after}: what was there before, and what came now"
        yield from self.explained.entry(".grad", text, "bold")


def _count(number: str) -> str:
    """A number of any length, readable."""
    if len(number) <= 9:
        return f"{int(number):,}"
    return f"about {number[0]}.{number[1]}e{len(number) - 1}"
