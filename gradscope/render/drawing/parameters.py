"""The leaves of a report as rows of numbers, sorted, which table and csv show; and as the table
under a tree: what arrived for each, as a sum where it is one, and its ``.grad``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.model.plain import Number, number
from gradscope.model.report import GradientInfo, Leaf, State
from gradscope.render.drawing.facts import cancelling, difference, hooked
from gradscope.render.drawing.head import by_size
from gradscope.render.drawing.scale import BAD_INK, size_cell
from gradscope.render.drawing.scene import Scene, state_word
from gradscope.render.words import numbers
from gradscope.render.words.numbers import elements
from gradscope.render.words.table import Cell, Column, Part, Writer
from gradscope.simplify.folded import meant
from gradscope.simplify.gradients import ViewGradients
from gradscope.simplify.view import View
from gradscope.words import either

if TYPE_CHECKING:
    from gradscope.render.drawing.beside import Calls
    from gradscope.render.options import Mark


class Parameter(NamedTuple):
    """One leaf.  Numbers are None where they are not known.

    ``weight`` and ``gradient`` are 2-norms, ``ratio`` is the second by the first; ``zeros`` and
    ``nonfinite`` count elements of the gradient.  ``unscaled`` is the norm of the
    gradient divided by what a GradScaler multiplied the loss with, ``cancelled`` the share of its
    contributions that cancels, where they oppose each other."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    state: State | None
    weight: Number | None
    gradient: Number | None
    ratio: Number | None
    zeros: int | None
    nonfinite: int | None
    unscaled: Number | None = None
    cancelled: float | None = None


def parameters(scene: Scene) -> list[Parameter]:
    """All leaves that the options ask for: in the order of backward, or the largest of a column
    first.

    Raises:
        GradscopeError: when they are to be sorted by numbers that this report does not hold.
    """
    wanted = meant(scene.graph, scene.options.folding)
    leaves = enumerate(scene.graph.leaves)
    rows = [_parameter(scene, i, leaf) for i, leaf in leaves if leaf.node in wanted]
    top = scene.options.top
    column = scene.options.sort or ("gradient" if top else None)
    if column is not None:
        rows = _sorted(rows, column, smallest_first=(top or 0) < 0)
    return rows[: abs(top)] if top else rows


def _parameter(scene: Scene, position: int, leaf: Leaf) -> Parameter:
    info = scene.gradients.leaf(position) if scene.gradients else None
    name = visible(leaf.name)
    norm = info.norm if info else None
    return Parameter(
        name,
        leaf.tensor.shape,
        leaf.tensor.dtype,
        info.state if info else None,
        leaf.norm,
        norm,
        _ratio(norm, leaf.norm),
        _zeros(scene, position, info) if info else None,
        info.nan + info.inf if info and norm is not None else None,
        unscaled(norm, scene.graph.scale),
        scene.gradients.cancelled(leaf.node) if scene.gradients else None,
    )


def unscaled(norm: Number | None, scale: float | None) -> Number | None:
    """A norm without the scale of a GradScaler; None where there is none."""
    if norm is None or scale is None:
        return None
    return number(float(norm) / scale if scale else math.nan)


def _zeros(scene: Scene, position: int, info: GradientInfo) -> int | None:
    if info.state == "zero":
        return elements(scene.graph.leaves[position].tensor.shape)
    if info.values is not None and not info.dtype.startswith("complex"):
        return sum(value == 0 for value in info.values)
    return info.histogram.zeros if info.histogram else None


def _ratio(gradient: Number | None, weight: Number | None) -> Number | None:
    """Not defined for a parameter that is 0 everywhere."""
    if gradient is None or weight is None or not float(weight):
        return None
    return number(float(gradient) / float(weight))


def _sorted(rows: list[Parameter], column: str, smallest_first: bool) -> list[Parameter]:
    if column in ("name", "dtype"):
        return sorted(rows, key=lambda row: str(getattr(row, column)), reverse=smallest_first)
    keys = {row: size for row in rows if (size := _size(row, column)) is not None}
    if rows and not keys:
        raise GradscopeError(
            f"this report holds no {column} to sort by",
            f"look with gradients: {either('gradscope backward', 'gradscope.backward(root)')}",
        )
    sign = 1 if smallest_first else -1

    def place(row: Parameter) -> tuple[bool, bool, float]:
        """What is not finite leads either way, what is not known comes last."""
        size = keys.get(row, 0.0)
        is_finite = math.isfinite(size)
        return row not in keys, is_finite, sign * size if is_finite else 0.0

    return sorted(rows, key=place)


def _size(row: Parameter, column: str) -> float | None:
    if column == "shape":
        return float(min(elements(row.shape), 2**63))
    value: Number | None = getattr(row, column)
    return None if value is None else float(value)


MOST_TERMS = 4
"""Longer sums are shown by their result alone."""

OTHERS = 28
"""Cells that a sum leaves to the other columns; one that would need more is shown by its result."""

COLUMNS = (
    Column("leaf", narrowest=12, comfort=24),
    Column("shape", drop=1),
    Column("gradient", drop=3),
    Column("‖g‖", right=True),
    Column("‖g‖/scale", right=True, drop=4),
    Column(".grad", drop=2),
)


def _by_rounds(view: View, order: list[int]) -> Iterator[int]:
    """The nodes of items; those of what is drawn once round by round."""
    met: set[int] = set()
    for item in (view.items[at] for at in order):
        if item.template is None:
            yield from item.members
        elif item.template not in met:
            met.add(item.template)
            for one in view.templates[item.template].rounds:
                yield from one.nodes


class LeafTable(Writer):
    """The leaves of a scene, in the order in which a reader meets them in the tree; the largest
    first where not all can be shown."""

    def __init__(
        self, scene: Scene, gradients: ViewGradients, order: list[int], calls: Calls | None
    ) -> None:
        """``order``: all items as they are met; leaves inside a closed one follow each other.
        Those that are not what the options focus on are left out.  ``calls``: what arrived at each
        of them is shown."""
        super().__init__(scene.options)
        self.scene = scene
        self.gradients = gradients
        self.calls = calls
        self.columns = [*COLUMNS[:2], *calls.columns()] if calls else COLUMNS
        graph = scene.graph
        positions = {leaf.node: index for index, leaf in enumerate(graph.leaves)}
        nodes = _by_rounds(scene.view, order)
        folding = self.options.folding
        if folding.focus is not None:
            positions = {node: positions[node] for node in positions.keys() & meant(graph, folding)}
        self.positions = [positions[node] for node in nodes if node in positions]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def names(self) -> list[str]:
        """The first name of each leaf that has one."""
        leaves = (self.scene.graph.leaves[position] for position in self.positions)
        return [leaf.names[0] for leaf in leaves if leaf.names]

    def lines(self, most: int) -> list[str]:
        """The table in at most ``most`` lines (at least four), with a count of what was left
        out."""
        if not self.positions:
            return []
        shown, columns = self.positions, [*self.columns]
        if self.options.sides:
            shown = sorted(shown, key=self._differing)
            columns[0] = replace(columns[0], title="leaf, largest difference first")
        if len(shown) + 1 > most:
            if self.calls is None:
                shown = sorted(shown, key=lambda one: by_size(self.gradients.leaf(one), -1))
                columns[0] = replace(columns[0], title="leaf, largest first")
            shown = shown[: max(most - 2, 1)]
        lines = list(self.table(columns, map(self.cells, shown)))
        return [*lines, *self.more(len(self.positions) - len(shown), "leaf")]

    def _differing(self, position: int) -> tuple[bool, float]:
        """By how far the gradients lie apart; last the leaves of which only one side has any."""
        mark, each = self._difference(position), self.scene.each
        is_alone = any(one.leaf(position).state == "not reached" for one in each)
        return is_alone, -mark.weight if mark else 0.0

    def _difference(self, position: int) -> Mark | None:
        """What differs in a comparison: a leaf that is on one side alone, or its gradient."""
        overlay, node = self.options.overlay, self.scene.graph.leaves[position].node
        if overlay is None:
            return None
        alone = overlay.nodes.get(node)
        return alone if alone and alone.words else overlay.leaves.get(node)

    def cells(self, position: int) -> list[Cell]:
        """The cells of a leaf."""
        leaf = self.scene.graph.leaves[position]
        name = Part(f"{self.glyphs.leaf} ", "green", "never"), Part(leaf.name, "green", "start")
        shape = numbers.shape(leaf.tensor.shape)
        if self.calls is not None:
            each = [one.leaf(position) for one in self.calls.each]
            differs = difference(self._difference(position))
            return [name, shape, *self.calls.cells(each, differs)]
        total = self.gradients.leaf(position)
        ink = BAD_INK if total.state == "non-finite" else ""
        norm = unscaled(total.norm, self.scene.graph.scale)
        return [
            name,
            shape,
            Part(self._sum(leaf, total), ink),
            size_cell(total, self.glyphs, ink),
            Part("" if norm is None else numbers.number(norm), ink),
            self._accumulated(position, leaf),
        ]

    def _sum(self, leaf: Leaf, total: GradientInfo) -> str:
        """``contribution + contribution = sum``, or how many contributions there were."""
        result = self._text(total, leaf)
        hook = self.gradients.backward.hook_on(leaf.node)
        if hook is not None:
            return f"{result} ({hooked(hook)})".strip()
        parts = self.gradients.contributions(leaf.node)
        terms = [self._text(part, leaf) for part in parts if part.norm is not None]
        # A single contribution is the sum; saying it twice helps nobody.
        if len(terms) < 2:
            return result
        full = f"{' + '.join(terms)} = {result}"
        if all(terms) and len(terms) <= MOST_TERMS and len(full) <= self.options.width - OTHERS:
            return full
        share = self.gradients.cancelled(leaf.node)
        opposed = ""
        if share is not None:
            # Of those that are not 0.
            many = self.gradients.opposed(leaf.node)
            which = "which" if many == len(terms) else f"{many:,} of which"
            opposed = f", {which} cancel {cancelling(share)}"
        return f"{result} (sum of {len(terms):,}{opposed})".strip()

    def _text(self, info: GradientInfo, leaf: Leaf) -> str:
        values = self.scene.values(info, leaf.tensor.shape)
        return values or state_word(info, self.glyphs.silent, self.glyphs.bad)

    def _accumulated(self, position: int, leaf: Leaf) -> str:
        """``3 + 3 = 6``: what was there before, what came, what it is now."""
        backward = self.gradients.backward
        entry = backward.accumulations[position]
        if entry.after is None or entry.before is None:
            return ""
        after = self._amount(backward.gradients[entry.after], leaf)
        before, new = backward.gradients[entry.before], backward.gradients[entry.new]
        if new.state in ("none", "not reached"):
            return f"stays {after}"
        return f"{self._amount(before, leaf)} + {self._amount(new, leaf)} = {after}"

    def _amount(self, info: GradientInfo, leaf: Leaf) -> str:
        """Values where they are few, else the norm."""
        text = self._text(info, leaf)
        if text or info.norm is None:
            return text
        return f"‖{numbers.number(info.norm)}‖"
