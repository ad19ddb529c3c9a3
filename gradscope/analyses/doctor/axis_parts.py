"""What each axis of a tensor is made of, followed through reshaping by arithmetic on lengths alone.

An axis is a row of parts, the outermost first: a view merges axes to one of several parts, or
splits a part in two.  Where it cuts through several parts at once, or keeps only their number, what
comes out is a mixture; one that is as long as a part that it has broken *claims* to be that.
Knows nothing of calls, and of what is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(eq=False, slots=True)
class AxisOrigin:
    """What an axis is, in whatever tensor and at whatever length it lies.

    ``features``: a layer made it.  ``samples``: it counts them.  ``steps``: a network went along
    it.  ``added``: by this call a constant came in that varies along it, and not along that other.
    """

    features: bool = False
    samples: bool = False
    steps: bool = False
    added: tuple[AxisOrigin, int, int, int] | None = None


@dataclass(eq=False, slots=True)
class Mixture:
    """A view that mixes axes; ``excused``: it is a step of something longer."""

    place: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    excused: bool = False


@dataclass(eq=False, slots=True)
class AxisPart:
    """So many elements of an axis, or of a mixture that claims to be another part; ``half`` of
    this one, the inner where ``other`` is the outer one."""

    size: int
    origin: AxisOrigin
    mixture: Mixture | None = None
    claims: AxisPart | None = None
    half: AxisPart | None = None
    other: AxisPart | None = None


Axis = tuple[AxisPart, ...]


def named(shape: Sequence[int], features: bool = False) -> list[Axis]:
    """Axes that were not met before."""
    return [new_axis(size, features) for size in shape]


def new_axis(size: int, features: bool = False) -> Axis:
    """An axis that was not met before."""
    return (AxisPart(size, AxisOrigin(features)),) if size > 1 else ()


def length(axis: Axis) -> int:
    """How many elements an axis has."""
    # Nearly all are of one part.
    return axis[0].size if len(axis) == 1 else math.prod(part.size for part in axis)


def sole(axis: Axis) -> AxisPart | None:
    """The one part that an axis consists of."""
    return axis[0] if len(axis) == 1 else None


def seen_through(tensor: torch.Tensor, view: torch.Tensor, axes: Sequence[Axis]) -> list[Axis]:
    """The axes of a view that moves, drops and cuts off, told by their strides."""
    found: list[Axis] = []
    steps = zip(tensor.stride(), tensor.shape, strict=True)
    strides = [stride if size > 1 else 0 for stride, size in steps]
    for stride, size in zip(view.stride(), view.shape, strict=True):
        axis = axes[strides.index(stride)] if stride and strides.count(stride) == 1 else ()
        if length(axis) != size:
            for part in axis:
                if part.mixture is not None:
                    part.mixture.excused = True
            axis = (AxisPart(size, axis[0].origin),) if len(axis) == 1 and size > 1 else ()
        found.append(axis if size > 1 else ())
    return found


def regrouped(
    axes: Sequence[Axis], before: Sequence[int], after: Sequence[int], place: int
) -> list[Axis]:
    """The axes after a view from one shape to another."""
    given = [part for axis in axes for part in axis]
    if math.prod(part.size for part in given) != math.prod(before) or 0 in before:
        return named(after)
    waiting, found = list(given), list[Axis]()
    mixture = Mixture(place, tuple(before), tuple(after))
    while len(found) < len(after):
        found += _next_axes(waiting, after[len(found) :], mixture)
    kept = {part for axis in found for part in axis}
    broken = [part for part in given if part not in kept]
    for part in broken:
        if part.mixture is not None:
            part.mixture.excused = True
    for number, axis in enumerate(found):
        claimed = [part for part in given if part.size == after[number]]
        # (n, n + 1) seen as (n + 1, n) is how a relative attention shifts its rows.
        is_shift = any(abs(part.size - after[number]) == 1 for part in broken)
        is_it = len(claimed) == 1 and claimed[0] in broken and not is_shift
        if axis and is_it and list(after).count(after[number]) == 1 and not claimed[0].mixture:
            found[number] = (AxisPart(after[number], AxisOrigin(), mixture, claimed[0]),)
    return found


def _next_axes(waiting: list[AxisPart], sizes: Sequence[int], mixture: Mixture) -> list[Axis]:
    """The next axis, made of what waits; or the next few, where they cut through several parts."""
    taken, left = list[AxisPart](), sizes[0]
    while left > 1:
        part = waiting.pop(0)
        if left % part.size == 0:
            taken.append(part)
            left //= part.size
        elif part.size % left == 0:
            outer, inner = _split(part, left)
            taken.append(outer)
            waiting.insert(0, inner)
            left = 1
        else:
            return _cut(math.prod(one.size for one in (*taken, part)), waiting, sizes, mixture)
        if len(taken) > 1 and (whole := taken[-1].half) and taken[-1].other is taken[-2]:
            taken[-2:] = [whole]
    return [tuple(taken)]


def _split(part: AxisPart, outer: int) -> tuple[AxisPart, AxisPart]:
    first = AxisPart(outer, AxisOrigin(part.origin.features))
    return first, AxisPart(
        part.size // outer, AxisOrigin(part.origin.features), None, None, part, first
    )


def _cut(held: int, waiting: list[AxisPart], sizes: Sequence[int], mixture: Mixture) -> list[Axis]:
    asked, number = sizes[0], 1
    while held != asked:
        if held < asked:
            held *= waiting.pop(0).size
        else:
            asked *= sizes[number]
            number += 1
    return [(AxisPart(size, AxisOrigin(), mixture),) if size > 1 else () for size in sizes[:number]]
