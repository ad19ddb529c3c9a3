"""The gradient of one call against finite differences, input by input.

Small inputs are moved element by element; larger ones along random directions, which all elements
are part of.  Where such a direction disagrees the element is found by halving.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import torch

from gradscope.derivatives.call import Form, Part, part_of
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.finite_differences import (
    ELEMENTS,
    STEP,
    Agreement,
    Judgement,
    along,
    along_element,
    element_of,
    judge,
    spread,
)
from gradscope.derivatives.single_call import DIRECTIONS, InputGradients, SingleCall, real
from gradscope.model.plain import number
from gradscope.model.studies import GradientComparison

TOLERANCE = 1e-4
"""In float64, relative; differences of a well-conditioned function are right to some 1e-9."""

FEW = 4_096
"""Elements of all inputs up to which single elements are moved too."""

CLEAR = 0.25
"""The share of the terms of a directional derivative that their sum is to have."""

TOO_LONG = "to compare it takes too long"

Found = tuple[Judgement, tuple[int, ...] | None]
"""How the two compare, and at which element; None for all together."""


class Compared:
    """One call, its gradients and its differences.

    Args:
        alone: the call.
        gradients: what backward gave.
        until: the time, by ``time.monotonic``, by which all is to be done.

    ``flat`` are the inputs so far by which no difference was other than 0, and ``is_flat`` tells
    whether all are.
    """

    def __init__(
        self, alone: SingleCall, gradients: InputGradients, until: float = math.inf
    ) -> None:
        self._alone = alone
        self._gradients = gradients
        self._until = until
        self._here = alone.value()
        self._noise = alone.noise
        self.flat: set[int] = set()
        self.is_flat = True

    def inputs(self, names: list[str]) -> Iterator[GradientComparison]:
        """For every input the place where the two differ most."""
        for position, name in enumerate(names):
            found = list(self._input(position))
            is_flat = all(judged.numeric == 0 for judged in self._sure(found))
            self.is_flat &= is_flat
            if found:
                self.flat |= {position} if is_flat else set()
                yield self._plain(position, name, *max(found, key=_badness))

    def _sure(self, found: list[Found]) -> Iterator[Judgement]:
        """The differences that tell whether a function is flat."""
        for judged, element in found:
            # Where a flat function jumps it has a kink; and a direction of a large tensor, in which
            # some element jumps however small the step, tells nothing where it is not right.
            is_jump = element is None and not self._is_small and judged.verdict != "right"
            if judged.verdict != "kink" and not is_jump:
                yield judged

    @property
    def _is_small(self) -> bool:
        """Whether single elements are moved in any case."""
        return self._alone.elements <= FEW

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

    def _input(self, position: int) -> Iterator[Found]:
        tensor, slopes = real(self._alone.inputs[position]), self._slopes(position)
        sizes = _Sizes(tensor, slopes)
        is_few = tensor.numel() <= ELEMENTS or self._is_small
        if is_few:
            yield from self._elements(tensor, slopes, sizes)
        if tensor.numel() <= ELEMENTS:
            return
        broken = self._broken(tensor, slopes)
        if broken is not None:
            yield self._element(tensor, slopes, broken, sizes)
        judged, alone = self._direction(position), list[Found]()
        if judged.verdict != "right" and not is_few:
            # A kink at one element hides the others from a direction; and where the two differ,
            # only single elements tell whether forward is flat.
            alone = list(self._elements(tensor, slopes, sizes))
            yield from alone
        if judged.verdict != "wrong":
            yield judged, None
        elif all(one.verdict != "wrong" for one, _ in alone):
            yield self._found(position) or (judged, None)

    def _elements(
        self, tensor: torch.Tensor, slopes: torch.Tensor, sizes: _Sizes
    ) -> Iterator[Found]:
        """Some elements of an input, each alone."""
        for index in spread(tensor.numel()):
            if time.monotonic() > self._until:
                raise Unrepeatable(TOO_LONG)
            element = element_of(index, tensor.shape)
            # Moving what is infinite moves nothing.
            if bool(tensor[element].isfinite()):
                yield self._element(tensor, slopes, element, sizes)

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
        fixed = ~tensor.isfinite()
        if not self._alone.is_finite:
            # Results that are not finite leave no gradient; see _broken.
            fixed |= ~slopes.isfinite()
        for choice in range(DIRECTIONS):
            direction = self._alone.direction(position, among, choice)
            if part is not None:
                direction = part_of(direction, part, operand)
            direction[fixed] = 0
            terms = along(slopes, direction)
            # As large as the sum is when its terms have random signs.
            scale = float(torch.linalg.vector_norm(terms))
            # Where they cancel by chance, an error that all of them share would not show.
            if not abs(float(terms.sum())) < CLEAR * scale:
                break
        ruler = Agreement(TOLERANCE, max(scale, sizes.floor), self._noise)
        step = STEP * sizes.typical
        at = self._alone.along(position, direction)
        # The smaller step comes by fewer of the kinks that a large tensor is full of.
        return judge(float(terms.sum()), at, self._here, [step, step / 100], ruler)

    def _found(self, position: int) -> Found | None:
        """The element behind a direction that disagrees, by halving; None where it is not found in
        time."""
        tensor, slopes = real(self._alone.inputs[position]), self._slopes(position)
        part = range(tensor.numel())
        while len(part) > 1:
            if time.monotonic() > self._until:
                return None
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


def _badness(found: Found) -> tuple[int, float]:
    judged = found[0]
    difference = abs(judged.analytic - judged.numeric)
    return _RANKS[judged.verdict], difference if math.isfinite(difference) else math.inf
