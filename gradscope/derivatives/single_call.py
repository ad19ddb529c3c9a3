"""One call of the program alone: its inputs in float64, one number for all its results, and the
gradient of that number by torch's own backward.

Knows nothing of the tape around the call or of how the gradient is judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from gradscope.autograd.calls import sent_back
from gradscope.autograd.isolation import functions_on
from gradscope.derivatives.call import TRIANGLES, Call, Part, TapeSlot, is_square, part_of
from gradscope.derivatives.double_precision import (
    Tensors,
    Unrepeatable,
    has_drawn,
    is_wide,
    make_again,
)
from gradscope.derivatives.finite_differences import STEP, weights
from gradscope.errors import described
from gradscope.handlers import let_pass

MOST_MOVED = 64
"""Elements of a triangle that are moved one by one; of more, every so many."""

SEED = 0

ELSEWHERE = 1e4
"""How far off a second point is taken, to see whether forward is the identity there too."""

ROUNDING = 1e-15
"""What float64 loses of a number, relative to it."""

NEARBY = 4
"""So many times that much, for a function seldom computes in one step."""

OTHER = -0.5
"""What is sent into a backward that may not look at it; small, for some limit what they are given.
"""

DIRECTIONS = 4
"""Random directions among which one is chosen."""


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex numbers as a last dimension of two real ones, and real numbers as they are."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def cotangent(tensor: torch.Tensor) -> torch.Tensor:
    """Fixed factors for the elements of a result, in float64 or complex128; 1 for a single one."""
    if tensor.numel() == 1 and not tensor.is_complex():
        return torch.ones(tensor.shape, dtype=torch.float64, device=tensor.device)
    found = weights(real(tensor).shape, tensor.device)
    return torch.view_as_complex(found) if tensor.is_complex() else found


@dataclass
class InputGradients:
    """What backward gave: one gradient an input, None where it gave none."""

    of_inputs: list[torch.Tensor | None]
    changed_upstream: bool


class SingleCall:
    """A call that can be made again and again.

    Args:
        call: the call.
        operands: what it takes, in float64.

    ``first`` is what it gave first, ``draws``: from random numbers.

    Raises:
        Unrepeatable: when it cannot be made, or not in float64.
    """

    def __init__(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> None:
        self._call = call
        found = ((slot, operands(slot).detach()) for slot in dict.fromkeys(call.slots))
        taken = {slot: value.resolve_conj().resolve_neg().clone() for slot, value in found}
        self._taken = taken
        self.slots = [slot for slot in call.inputs if is_wide(taken[slot])]
        if not self.slots:
            raise Unrepeatable("none of its operands carries a gradient")
        self._prepare()
        with torch.enable_grad():
            self.first = self._outputs()
        self.draws = has_drawn(call)
        if not self.first:
            raise Unrepeatable("none of its results has double precision")
        self._finite = [real(one).isfinite() for one in self.first]
        self._weights = [cotangent(one) for one in self.first]
        for weight, finite in zip(self._weights, self._finite, strict=True):
            # Nothing can be said of the slope of what is infinite, such as a mask's elements.
            real(weight)[~finite] = 0

    @property
    def inputs(self) -> Tensors:
        """The operands that carry a gradient; to be moved in place, without history."""
        return [self._taken[slot] for slot in self.slots]

    @property
    def noise(self) -> float:
        """How far rounding moves :meth:`value`: each element by itself, so that the squares add
        up."""
        terms = zip(self.first, self._weights, self._finite, strict=True)
        squares = sum(
            float((real(one)[finite] * real(weight)[finite]).square().sum())
            for one, weight, finite in terms
        )
        return float(NEARBY * ROUNDING * squares**0.5)

    @cached_property
    def is_finite(self) -> bool:
        """Whether all its results are."""
        return all(bool(one.all()) for one in self._finite)

    @property
    def elements(self) -> int:
        """Elements of all inputs."""
        return sum(one.numel() for one in self.inputs)

    def _prepare(self) -> None:
        """Whatever has to be known before it is made first."""

    def _copies(self) -> dict[TapeSlot, torch.Tensor]:
        return {slot: value.clone() for slot, value in self._taken.items()}

    def _outputs(self) -> Tensors:
        """The results that carry a gradient, for the operands as they are now."""
        return self._made(self._copies())

    def _made(self, copies: dict[TapeSlot, torch.Tensor]) -> Tensors:
        """Make the call again with these operands, which it may change."""
        out = make_again(self._call, copies.__getitem__)
        found = [
            value
            for slot, value in zip(self._call.results, out, strict=True)
            if slot is not None and is_wide(value)
        ]
        changed = self._call.changed
        if changed is not None and changed not in self._call.results:
            found.append(copies[changed])
        return found

    def is_random(self) -> bool:
        """Whether two runs with the same random state differ."""
        second = self._outputs()
        return not all(_same(a, b) for a, b in zip(self.first, second, strict=True))

    def value(self) -> float:
        """One number for all results: how far they have moved from the first ones, weighted and
        summed.  Differences that are summed keep the digits that a difference of sums loses."""
        with torch.no_grad():
            terms = zip(self._outputs(), self.first, self._weights, self._finite, strict=True)
            moved = ((real(one) - real(first), real(w), fine) for one, first, w, fine in terms)
            if self.is_finite:  # picking elements would take longer than many a call
                return sum(float((move * weight).sum()) for move, weight, _ in moved)
            return sum(float((move[fine] * weight[fine]).sum()) for move, weight, fine in moved)

    def direction(self, number: int, among: range | None = None, choice: int = 0) -> torch.Tensor:
        """A random direction for an input, in real numbers; the same each time for one ``choice``;
        0 for elements that are not in a range."""
        tensor = real(self.inputs[number])
        own = torch.Generator().manual_seed(SEED + choice)
        whole = torch.randn(tensor.numel(), generator=own, dtype=torch.float64)
        if among is not None:
            whole[: among.start] = 0
            whole[among.stop :] = 0
        return whole.reshape(tensor.shape).to(tensor.device)

    def along(self, number: int, direction: torch.Tensor) -> Callable[[float], float]:
        """What :meth:`value` gives when an input is moved; it is put back each time."""
        tensor = real(self.inputs[number])
        start = tensor.clone()

        def at(shift: float) -> float:
            tensor.add_(direction, alpha=shift)
            try:
                return self.value()
            finally:
                tensor.copy_(start)

        return at

    def is_half_read(self, number: int) -> bool:
        """Whether the results stay the same when one triangle of an input's matrices is moved, and
        change with each element of the other."""
        tensor = self.inputs[number]
        if not is_square(tensor):
            return False
        size, here = tensor.shape[-1], self.value()

        def is_read(part: Part) -> bool:
            at = self.along(number, part_of(self.direction(number), part, tensor))
            return any(at(shift) != here for shift in (-STEP, STEP))

        for unread, other in (TRIANGLES, TRIANGLES[::-1]):
            if not is_read(unread):
                # What takes some rows of a matrix may leave a triangle alone, too.
                places = other(torch.ones(size, size)).nonzero().tolist()
                some = places[:: math.ceil(len(places) / MOST_MOVED)]
                return all(is_read(_element(*place)) for place in some)
        return False

    def ignores_upstream(self, gradients: InputGradients) -> bool:
        """Whether backward, which gave these gradients, gives the same whatever it is given; 0 and
        a gradient that points elsewhere are tried, so that one which limits or normalises what it
        is given does not count."""
        given = gradients.of_inputs
        if not any(one is not None and bool(one.any()) for one in given):
            return False
        for factor in (OTHER, 0.0):
            try:
                others = self.gradients(factor).of_inputs
            except Unrepeatable:
                return False
            pairs = [(a, b) for a, b in zip(given, others, strict=True) if a is not None]
            if not all(b is not None and _same(a, b) for a, b in pairs):
                return False
        return True

    def gradients(self, factor: float = 1.0) -> InputGradients:
        """The gradient of that number by every input, as backward gives it; ``factor`` times as
        much is sent into it.

        Raises:
            Unrepeatable: when backward fails.
        """
        upstream = [weight * factor for weight in self._weights]
        try:
            for one in self.inputs:
                one.requires_grad_()
            with torch.enable_grad():
                out = self._outputs()
            found = backward_of(out, upstream, self.inputs)
        finally:
            self._settle()
        pairs = list(zip(upstream, self._weights, strict=True))
        changed = not all(_same(a, b * factor) for a, b in pairs)
        return InputGradients([None if one is None else dense_of(one) for one in found], changed)

    def _settle(self) -> None:
        """Take the history off the inputs again."""
        for slot in self.slots:
            self._taken[slot] = self._taken[slot].detach()

    def is_identity(self, number: int) -> bool:
        """Whether one of the results equals this input, also far away: a limit is the identity too,
        inside its bounds."""
        tensor = self.inputs[number]
        if not _has(self.first, tensor):
            return False
        start = tensor.clone()
        tensor.mul_(-ELSEWHERE)
        try:
            with torch.no_grad():
                return _has(self._outputs(), tensor)
        finally:
            tensor.copy_(start)


def backward_of(
    made: Tensors, upstream: Tensors, inputs: Tensors, create_graph: bool = False
) -> tuple[torch.Tensor | None, ...]:
    """What backward sends to the inputs for upstream gradients of what was made of them.

    Raises:
        Unrepeatable: when it fails.
    """
    pairs = [(one, up) for one, up in zip(made, upstream, strict=True) if one.grad_fn]
    roots, given = [one for one, _ in pairs], [up for _, up in pairs]
    try:
        with functions_on():
            return sent_back(roots, inputs, given, create_graph=create_graph)
    except Exception as error:
        let_pass(error)
        raise Unrepeatable(f"backward raised {described(error)}") from None


def dense_of(gradient: torch.Tensor, with_history: bool = False) -> torch.Tensor:
    """A gradient, without history if that is not asked for, its zeros written out."""
    still = gradient if with_history else gradient.detach()
    return still if still.layout is torch.strided else still.to_dense()


def _has(outputs: Tensors, tensor: torch.Tensor) -> bool:
    return any(one.shape == tensor.shape and _same(one, tensor) for one in outputs)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(torch.nan_to_num(real(a)), torch.nan_to_num(real(b)))


def _element(row: int, column: int) -> Part:
    """That element alone of matrices."""

    def part(matrix: torch.Tensor) -> torch.Tensor:
        kept = torch.zeros_like(matrix)
        kept[..., row, column] = matrix[..., row, column]
        return kept

    return part
