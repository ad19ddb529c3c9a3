"""The leaves of a report as rows of numbers, sorted: what table and csv show.

Must not know how they are written."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.model.plain import Number, number
from gradscope.model.report import GradientInfo, Leaf, State
from gradscope.render.drawing.scene import Scene
from gradscope.render.words.numbers import elements
from gradscope.simplify.folded import meant
from gradscope.words import either


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
    name = visible(leaf.names[0]) if leaf.names else f"#{leaf.node}"
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
