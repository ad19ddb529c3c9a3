"""The gradient of one call against finite differences, input by input.

Small inputs are moved element by element; larger ones along random directions, which all elements
are part of.  Where such a direction disagrees the element is found by halving.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from gradscope.derivatives.finite_differences import (
    ELEMENTS,
    STEP,
    along,
    along_element,
    element_of,
    spread,
)
from gradscope.derivatives.forms import Form, Part, part_of
from gradscope.derivatives.judging import Agreement, Judgement, judge
from gradscope.derivatives.single_call import InputGradients, SingleCall, real
from gradscope.model.checks import GradientComparison
from gradscope.model.plain import number

TOLERANCE = 1e-4
"""In float64, relative; differences of a well-conditioned function are right to some 1e-9."""

FEW = 4_096
"""Elements of all inputs up to which single elements are moved too."""


class Compared:
    """One call, its gradients and its differences.

    Args:
        alone: the call.
        gradients: what backward gave.

    ``is_flat``: so far no difference was other than 0.
    """

    def __init__(self, alone: SingleCall, gradients: InputGradients) -> None:
        self._alone = alone
        self._gradients = gradients
        self._here = alone.value()
        self._noise = alone.noise
        self.is_flat = True

    def inputs(self, names: list[str]) -> Iterator[GradientComparison]:
        """For every input the place where the two differ most."""
        for position, name in enumerate(names):
            found = list(self._input(position))
            # Where a flat function jumps it has a kink.
            sure = [judged for judged, _ in found if judged.verdict != "kink"]
            self.is_flat &= all(judged.numeric == 0 for judged in sure)
            if found:
                yield self._plain(position, name, *max(found, key=_badness))

    def within(self, form: Form, one: GradientComparison) -> GradientComparison | None:
        """How the two compare for steps of an input that keep a form; None where they differ."""
        judged = self._direction(one.input, form.project)
        if judged.verdict != "right":
            return None
        return self._plain(one.input, one.name, judged, None)

    def _slopes(self, position: int) -> torch.Tensor:
        """The gradient of an input as real numbers, 0 where backward gave none."""
        tensor, gradient = self._alone.inputs[position], self._gradients.of_inputs[position]
        return real(torch.zeros_like(tensor) if gradient is None else gradient.to(tensor.dtype))

    def _input(self, position: int) -> Iterator[tuple[Judgement, tuple[int, ...] | None]]:
        tensor, slopes = real(self._alone.inputs[position]), self._slopes(position)
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
        broken = self._broken(tensor, slopes)
        if broken is not None:
            yield self._element(tensor, slopes, broken, sizes)
        judged = self._direction(position)
        if judged.verdict == "wrong":
            yield self._found(position) or (judged, None)
            return
        yield judged, None
        if judged.verdict != "right" and not few:
            # A kink at one element hides the others from a direction.
            for index in spread(count, 4):
                yield self._element(tensor, slopes, element_of(index, tensor.shape), sizes)

    def _broken(self, tensor: torch.Tensor, slopes: torch.Tensor) -> tuple[int, ...] | None:
        """The first element at which results that are not finite leave no gradient."""
        found = ((~slopes.isfinite()) & tensor.isfinite()).flatten()
        if self._alone.is_finite or not bool(found.any()):
            return None
        return element_of(int(found.to(torch.uint8).argmax()), tensor.shape)

    def _element(
        self, tensor: torch.Tensor, slopes: torch.Tensor, index: tuple[int, ...], sizes: _Sizes
    ) -> tuple[Judgement, tuple[int, ...]]:
        at = along_element(tensor, index, self._alone.value)
        ruler = Agreement(TOLERANCE, sizes.floor, self._noise)
        steps = sizes.steps(abs(float(tensor[index])))
        judged = judge(float(slopes[index]), at, self._here, steps, ruler)
        if not (math.isfinite(judged.analytic) or self._alone.is_finite):
            judged = judged._replace(verdict="kink")
        return judged, index

    def _direction(
        self, position: int, part: Part | None = None, among: range | None = None
    ) -> Judgement:
        """All elements of an input together: of all of it, of a part of its matrices, or of a
        range of elements."""
        operand, slopes = self._alone.inputs[position], self._slopes(position)
        tensor = real(operand)
        sizes = _Sizes(tensor, slopes)
        direction = self._alone.direction(position, among)
        if part is not None:
            direction = part_of(direction, part, operand)
        direction[~tensor.isfinite()] = 0
        if not self._alone.is_finite:
            # Results that are not finite leave no gradient; see _broken.
            direction[~slopes.isfinite()] = 0
        terms = along(slopes, direction)
        # As large as the sum is when its terms have random signs.
        scale = float(torch.linalg.vector_norm(terms))
        ruler = Agreement(TOLERANCE, max(scale, sizes.floor), self._noise)
        step = STEP * sizes.typical
        at = self._alone.along(position, direction)
        # The smaller step comes by fewer of the kinks that a large tensor is full of.
        return judge(float(terms.sum()), at, self._here, [step, step / 100], ruler)

    def _found(self, position: int) -> tuple[Judgement, tuple[int, ...]] | None:
        """The element behind a direction that disagrees, by halving."""
        tensor, slopes = real(self._alone.inputs[position]), self._slopes(position)
        part = range(tensor.numel())
        while len(part) > 1:
            middle = (part.start + part.stop) // 2
            halves = range(part.start, middle), range(middle, part.stop)
            wrong = (
                half for half in halves if self._direction(position, among=half).verdict == "wrong"
            )
            half = next(wrong, None)
            if half is None:
                return None
            part = half
        sizes = _Sizes(tensor, slopes)
        found = self._element(tensor, slopes, element_of(part.start, tensor.shape), sizes)
        return found if found[0].verdict == "wrong" else None

    def _plain(
        self, position: int, name: str, judged: Judgement, element: tuple[int, ...] | None
    ) -> GradientComparison:
        is_none = self._gradients.of_inputs[position] is None
        return GradientComparison(
            position,
            name,
            judged.verdict,
            None if is_none else number(judged.analytic),
            number(judged.numeric),
            number(judged.error),
            element,
        )


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


def _badness(found: tuple[Judgement, tuple[int, ...] | None]) -> tuple[int, float]:
    judged = found[0]
    difference = abs(judged.analytic - judged.numeric)
    return _RANKS[judged.verdict], difference if math.isfinite(difference) else math.inf
