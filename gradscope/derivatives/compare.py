"""The gradient of one function against finite differences, input by input.

Small inputs are moved element by element; larger ones along random directions, which all elements
are part of.  Where such a direction disagrees the element is found by halving.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import torch

from gradscope.derivatives.call import Form, Part, part_of
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.finite_differences import (
    ELEMENTS,
    Agreement,
    Judgement,
    clear_direction,
    element_of,
    judge,
    moved,
    spread,
)
from gradscope.derivatives.wide_function import (
    InputGradients,
    WideFunction,
    random_direction,
    real,
)
from gradscope.model.studies import GradientComparison, Verdict

TOLERANCE = 1e-4
"""In float64, relative; differences of a well-conditioned function are right to some 1e-9."""

FEW = 4_096
"""Elements of all inputs up to which single elements are moved too."""

TOO_LONG = "to compare it takes too long"

Found = tuple[Judgement, tuple[int, ...] | None]
"""How the two compare, and at which element; None for all together."""

Function = TypeVar("Function", bound=WideFunction)


class Compared(Generic[Function]):
    """One function, its gradients and its differences.

    Args:
        alone: the function.
        gradients: what backward gave.
        names: what the program calls its inputs.
        until: the time, by ``time.monotonic``, by which all is to be done.

    ``inputs`` has for every input the place where the two differ most.  ``flat`` are the inputs by
    which no difference was other than 0, and ``is_flat`` tells whether all are.
    """

    def __init__(
        self, alone: Function, gradients: InputGradients, names: Sequence[str], until: float
    ) -> None:
        self.alone, self.gradients = alone, gradients
        self._moved = [
            _Input(alone, position, gradient, until)
            for position, gradient in enumerate(gradients.of_inputs)
        ]
        self._is_small = alone.elements <= FEW
        self.flat: set[int] = set()
        self.is_flat = True
        self.inputs = tuple(self._compared(names))

    def _compared(self, names: Sequence[str]) -> Iterator[GradientComparison]:
        for one, name in zip(self._moved, names, strict=True):
            found = list(one.found(self._is_small))
            is_flat = all(judged.numeric == 0 for judged in self._sure(found))
            self.is_flat &= is_flat
            if found:
                self.flat |= {one.position} if is_flat else set()
                yield one.told(name, *max(found, key=_badness))

    @property
    def verdict(self) -> Verdict:
        """The worst on any input."""
        return worst(self.inputs)

    @property
    def wrong(self) -> list[GradientComparison]:
        """The inputs of which it is wrong."""
        return [one for one in self.inputs if one.verdict == "wrong"]

    def _sure(self, found: list[Found]) -> Iterator[Judgement]:
        """The differences that tell whether a function is flat."""
        for judged, element in found:
            # Where a flat function jumps it has a kink; and a direction of a large tensor, in which
            # some element jumps however small the step, tells nothing where it is not right.
            is_jump = element is None and not self._is_small and judged.verdict != "right"
            if judged.verdict != "kink" and not is_jump:
                yield judged

    def within(self, form: Form, one: GradientComparison) -> GradientComparison | None:
        """How the two compare for steps of an input that keep a form; None where they differ."""
        moved = self._moved[one.input]
        judged = moved.direction(form.project)
        return moved.told(one.name, judged, None) if judged.verdict == "right" else None


class _Input:
    """One input, and how large it and its gradient are, by which steps and differences are
    measured."""

    def __init__(
        self, alone: WideFunction, position: int, gradient: torch.Tensor | None, until: float
    ) -> None:
        self._alone, self.position, self._until = alone, position, until
        self._operand = operand = alone.inputs[position]
        self._tensor = real(operand)
        self._has_gradient = gradient is not None
        self._tolerance = alone.tolerance_of(TOLERANCE)
        known = torch.zeros_like(operand) if gradient is None else gradient.to(operand.dtype)
        self._slopes = real(known)
        finite = self._slopes[self._slopes.isfinite()]
        largest = float(finite.abs().max()) if finite.numel() else 0.0
        self._floor = 1e-3 * largest + 1e-7
        finite = self._tensor[self._tensor.isfinite()]
        size = float(finite.norm()) / max(finite.numel(), 1) ** 0.5
        self._typical = size if 0 < size < math.inf else 1.0

    def found(self, is_small: bool) -> Iterator[Found]:
        """How the two compare at some elements, if it is small, and for all together."""
        count = self._tensor.numel()
        is_few = is_small or count <= ELEMENTS
        if is_few:
            yield from self._elements()
        if count <= ELEMENTS:
            return
        # The first element at which results that are not finite leave no gradient.
        broken = (~self._slopes.isfinite()) & self._tensor.isfinite()
        if not self._alone.is_finite and bool(broken.any()):
            yield self._element(int(broken.flatten().to(torch.uint8).argmax()))
        judged, alone = self.direction(), list[Found]()
        if judged.verdict != "right" and not is_few:
            # A kink at one element hides the others from a direction; and where the two differ,
            # only single elements tell whether forward is flat.
            alone = list(self._elements())
            yield from alone
        if judged.verdict != "wrong":
            yield judged, None
        elif all(one.verdict != "wrong" for one, _ in alone):
            yield self._guilty() or (judged, None)

    def _elements(self) -> Iterator[Found]:
        """Some elements, each alone."""
        for index in spread(self._tensor.numel()):
            if time.monotonic() > self._until:
                raise Unrepeatable(TOO_LONG)
            # Moving what is infinite moves nothing.
            if bool(self._tensor[element_of(index, self._tensor.shape)].isfinite()):
                yield self._element(index)

    def _element(self, index: int) -> Found:
        place = element_of(index, self._tensor.shape)
        element = self._tensor[place]
        # As far as the tensor is large, then as the element itself is.
        near = 1e-4 * abs(float(element))
        far = self._alone.steps[0] * max(abs(float(element)), self._typical)
        judged = judge(
            float(self._slopes[place]),
            moved([(element, torch.ones_like(element))], self._alone.value),
            [far, near] if 0 < near < far / 10 and not self._alone.is_coarse else [far],
            Agreement(self._tolerance, self._floor, self._alone.noise),
        )
        if not (math.isfinite(judged.analytic) or self._alone.is_finite):
            judged = judged._replace(verdict="kink")
        return judged, place

    def direction(self, part: Part | None = None, among: range | None = None) -> Judgement:
        """All elements together: of all of it, of a part of its matrices, or of a range of
        elements."""
        fixed = ~self._tensor.isfinite()
        if not self._alone.is_finite:
            # Results that are not finite leave no gradient.
            fixed |= ~self._slopes.isfinite()

        def chosen(choice: int) -> list[torch.Tensor]:
            direction = random_direction(self._operand, choice)
            if among is not None:
                direction.view(-1)[: among.start] = 0
                direction.view(-1)[among.stop :] = 0
            if part is not None:
                direction = part_of(direction, part, self._operand)
            direction[fixed] = 0
            return [direction]

        (direction,), slope, scale = clear_direction([self._slopes], chosen)
        ruler = Agreement(self._tolerance, max(scale, self._floor), self._alone.noise)
        at = self._alone.along((self.position, direction))
        return judge(slope, at, [step * self._typical for step in self._alone.steps], ruler)

    def _guilty(self) -> Found | None:
        """The element behind a direction that disagrees, by halving; None where it is not found in
        time."""
        part = range(self._tensor.numel())
        while len(part) > 1:
            if time.monotonic() > self._until:
                return None
            middle = (part.start + part.stop) // 2
            halves = range(part.start, middle), range(middle, part.stop)
            wrong = (one for one in halves if self.direction(among=one).verdict == "wrong")
            half = next(wrong, None)
            if half is None:
                return None
            part = half
        found = self._element(part.start)
        return found if found[0].verdict == "wrong" else None

    def told(
        self, name: str, judged: Judgement, element: tuple[int, ...] | None
    ) -> GradientComparison:
        """The same as plain data."""
        analytic, numeric, error = judged.numbers
        said = analytic if self._has_gradient else None
        verdict = judged.verdict
        return GradientComparison(self.position, name, verdict, said, numeric, error, element)


_WORST: tuple[Verdict, ...] = ("wrong", "kink", "unresolved", "right")


def worst(inputs: Iterable[GradientComparison]) -> Verdict:
    """The worst of the verdicts on some inputs."""
    found = {one.verdict for one in inputs}
    return next((verdict for verdict in _WORST if verdict in found), "right")


_RANKS = {"right": 0, "unresolved": 1, "kink": 1, "wrong": 2}


def _badness(found: Found) -> tuple[int, float]:
    judged = found[0]
    difference = abs(judged.analytic - judged.numeric)
    return _RANKS[judged.verdict], difference if math.isfinite(difference) else math.inf
