"""The gradient of one call against finite differences, input by input.

Small inputs are moved element by element; larger ones along random directions, which all elements
are part of.  Where such a direction disagrees the element is found by halving.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from gradscope.capture.checking.alone import Alone, Gradients, real
from gradscope.capture.checking.judging import Judged, Ruler, judge
from gradscope.capture.finite import ELEMENTS, STEP, along_element, element_of, spread
from gradscope.checks import Comparison
from gradscope.plain import number

TOLERANCE = 1e-4
"""In float64, relative; differences of a well-conditioned function are right to some 1e-9."""

FEW = 4_096
"""Elements of all inputs up to which single elements are moved too."""

SEED = 0


class Compared:
    """One call, its gradients and its differences.

    Args:
        alone: the call.
        gradients: what backward gave.

    ``is_flat``: so far no difference was other than 0.
    """

    def __init__(self, alone: Alone, gradients: Gradients) -> None:
        self._alone = alone
        self._gradients = gradients
        self._here = alone.value()
        self._noise = alone.noise
        self.is_flat = True

    def inputs(self, names: list[str]) -> Iterator[Comparison]:
        """For every input the place where the two differ most."""
        for position, name in enumerate(names):
            found = list(self._input(position))
            # Where a flat function jumps it has a kink.
            sure = [judged for judged, _ in found if judged.verdict != "kink"]
            self.is_flat &= all(judged.numeric == 0 for judged in sure)
            if found:
                worst = max(found, key=_badness)
                yield _plain(position, name, *worst, self._gradients.of_inputs[position] is None)

    def _input(self, position: int) -> Iterator[tuple[Judged, tuple[int, ...] | None]]:
        tensor = real(self._alone.inputs[position])
        gradient = self._gradients.of_inputs[position]
        slopes = torch.zeros_like(tensor) if gradient is None else real(gradient).to(tensor.dtype)
        sizes = _Sizes(tensor, slopes)
        count = tensor.numel()
        few = count <= ELEMENTS or self._alone.elements <= FEW
        for index in spread(count) if few else ():
            element = element_of(index, tensor.shape)
            # Moving what is infinite moves nothing.
            if bool(tensor[element].isfinite()):
                yield self._element(tensor, slopes, element, sizes)
        if count <= ELEMENTS:
            return
        judged = self._direction(tensor, slopes, range(count), sizes)
        if judged.verdict == "wrong":
            yield self._found(tensor, slopes, sizes) or (judged, None)
            return
        yield judged, None
        if judged.verdict != "right" and not few:
            # A kink at one element hides the others from a direction.
            for index in spread(count, 4):
                yield self._element(tensor, slopes, element_of(index, tensor.shape), sizes)

    def _element(
        self, tensor: torch.Tensor, slopes: torch.Tensor, index: tuple[int, ...], sizes: _Sizes
    ) -> tuple[Judged, tuple[int, ...]]:
        at = along_element(tensor, index, self._alone.value)
        ruler = Ruler(TOLERANCE, sizes.floor, self._noise)
        steps = sizes.steps(abs(float(tensor[index])))
        judged = judge(float(slopes[index]), at, self._here, steps, ruler)
        if not (math.isfinite(judged.analytic) or self._alone.is_finite):
            judged = judged._replace(verdict="kink")
        return judged, index

    def _direction(
        self, tensor: torch.Tensor, slopes: torch.Tensor, part: range, sizes: _Sizes
    ) -> Judged:
        """All elements of a part of an input together."""
        own = torch.Generator().manual_seed(SEED)
        whole = torch.randn(tensor.numel(), generator=own, dtype=torch.float64)
        some = torch.zeros_like(whole)
        some[part.start : part.stop] = whole[part.start : part.stop]
        direction = some.reshape(tensor.shape).to(tensor.device)
        direction[~tensor.isfinite()] = 0
        start = tensor.clone()

        def at(shift: float) -> float:
            tensor.add_(direction, alpha=shift)
            try:
                return self._alone.value()
            finally:
                tensor.copy_(start)

        # As large as the sum is when its terms have random signs.
        scale = float(torch.linalg.vector_norm(slopes * direction))
        ruler = Ruler(TOLERANCE, max(scale, sizes.floor), self._noise)
        analytic = float((slopes * direction).sum())
        step = STEP * sizes.typical
        # The smaller step comes by fewer of the kinks that a large tensor is full of.
        return judge(analytic, at, self._here, [step, step / 100], ruler)

    def _found(
        self, tensor: torch.Tensor, slopes: torch.Tensor, sizes: _Sizes
    ) -> tuple[Judged, tuple[int, ...]] | None:
        """The element behind a direction that disagrees, by halving."""
        part = range(tensor.numel())
        while len(part) > 1:
            middle = (part.start + part.stop) // 2
            halves = range(part.start, middle), range(middle, part.stop)
            wrong = (
                half
                for half in halves
                if self._direction(tensor, slopes, half, sizes).verdict == "wrong"
            )
            half = next(wrong, None)
            if half is None:
                return None
            part = half
        found = self._element(tensor, slopes, element_of(part.start, tensor.shape), sizes)
        return found if found[0].verdict == "wrong" else None


class _Sizes:
    """How large an input and its gradient are, so that steps and differences can be measured."""

    def __init__(self, tensor: torch.Tensor, slopes: torch.Tensor) -> None:
        finite = slopes[slopes.isfinite()]
        largest = float(finite.abs().max()) if finite.numel() else 0.0
        self.floor = 1e-3 * largest + 1e-7
        finite = tensor[tensor.isfinite()]
        size = float(finite.norm()) / max(finite.numel(), 1) ** 0.5
        self.typical = size if 0 < size < math.inf else 1.0

    def steps(self, value: float) -> list[float]:
        """How far to move an element: as the tensor is large, then as the element itself is."""
        first = STEP * max(value, self.typical)
        second = 1e-4 * value
        return [first, second] if 0 < second < first / 10 else [first]


_RANKS = {"right": 0, "unresolved": 1, "kink": 1, "wrong": 2}


def _badness(found: tuple[Judged, tuple[int, ...] | None]) -> tuple[int, float]:
    judged = found[0]
    difference = abs(judged.analytic - judged.numeric)
    return _RANKS[judged.verdict], difference if math.isfinite(difference) else math.inf


def _plain(
    position: int,
    name: str,
    judged: Judged,
    element: tuple[int, ...] | None,
    is_none: bool,
) -> Comparison:
    return Comparison(
        position,
        name,
        judged.verdict,
        None if is_none else number(judged.analytic),
        number(judged.numeric),
        number(judged.error),
        element,
    )
