"""One call of the program alone, and the backward of one, as functions of their operands in double
precision.

Knows nothing of the tape around the call or of how the gradient is judged.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from gradscope.autograd.nodes import is_barred, nearest
from gradscope.derivatives.call import (
    TRIANGLES,
    Call,
    Part,
    TapeSlot,
    is_square,
    left_behind,
    part_of,
)
from gradscope.derivatives.double_precision import (
    Tensors,
    Unrepeatable,
    is_wide,
    make_again,
)
from gradscope.derivatives.finite_differences import STEP
from gradscope.derivatives.wide_function import (
    InputGradients,
    WideFunction,
    backward_of,
    cotangent,
    dense_of,
    is_same,
    random_direction,
)

ELSEWHERE = 1e4
"""How far off a second point is taken, to see whether forward is the identity there too."""

OTHER = -0.5
"""What is sent into a backward that may not look at it; small, for some limit what they are given.
"""


class SingleCall(WideFunction):
    """A call that can be made again and again.

    Args:
        call: the call.
        operands: what it takes, in float64.

    ``slots`` are those of the inputs, which are the operands that carry a gradient; ``draws``: it
    gave ``first`` from random numbers.

    Raises:
        Unrepeatable: when it cannot be made, or not in float64.
    """

    def __init__(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> None:
        self._call = call
        found = ((slot, operands(slot).detach()) for slot in dict.fromkeys(call.slots))
        self._taken = {slot: value.resolve_conj().resolve_neg().clone() for slot, value in found}
        self.slots = [slot for slot in call.inputs if is_wide(self._taken[slot])]
        if not self.slots:
            raise Unrepeatable("none of its operands carries a gradient")
        inputs = [*(self._taken[slot] for slot in self.slots), *self._more_inputs()]
        with torch.enable_grad():
            first = self._outputs(inputs)
        self.draws = bool(left_behind(call.random))
        if not first:
            raise Unrepeatable("none of its results has double precision")
        super().__init__(inputs, first, [cotangent(one) for one in first])

    def _more_inputs(self) -> Tensors:
        """What it is a function of besides its operands."""
        return []

    def _outputs(self, inputs: Tensors) -> Tensors:
        return self._made(inputs)

    def _made(self, operands: Tensors) -> Tensors:
        """Make the call again with copies of these operands, which it may change."""
        taken = {**self._taken, **dict(zip(self.slots, operands, strict=True))}
        copies = {slot: value.clone() for slot, value in taken.items()}
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
        second = self._outputs(self.inputs)
        return not all(is_same(a, b) for a, b in zip(self.first, second, strict=True))

    def is_half_read(self, number: int) -> bool:
        """Whether the results stay the same when one triangle of an input's matrices is moved."""
        tensor = self.inputs[number]

        def is_read(part: Part) -> bool:
            at = self.along((number, part_of(random_direction(tensor), part, tensor)))
            return any(at(shift) for shift in (-STEP, STEP))

        return is_square(tensor) and not all(map(is_read, TRIANGLES))

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
            if not all(b is not None and is_same(a, b) for a, b in pairs):
                return False
        return True

    def is_identity(self, number: int) -> bool:
        """Whether one of the results equals this input, also far away: a limit is the identity too,
        inside its bounds."""

        def gives(outputs: Tensors, tensor: torch.Tensor) -> bool:
            return any(one.shape == tensor.shape and is_same(one, tensor) for one in outputs)

        inputs = list(self.inputs)
        inputs[number] = inputs[number] * -ELSEWHERE
        with torch.no_grad():
            is_here = gives(self.first, self.inputs[number])
            return is_here and gives(self._outputs(inputs), inputs[number])


class MarkedOnce(Unrepeatable):
    """The author of a Function has ruled double backward out."""


class BackwardAlone(SingleCall):
    """The same for the backward of a call, as a function of the operands and of the upstream
    gradients; arguments and errors as of :class:`SingleCall`."""

    def _more_inputs(self) -> Tensors:
        with torch.no_grad():
            made = self._made([self._taken[slot] for slot in self.slots])
        return [cotangent(one) for one in made]

    def _outputs(self, inputs: Tensors) -> Tensors:
        is_followed = torch.is_grad_enabled()
        wanted = [one if one.requires_grad else one.detach().requires_grad_() for one in inputs]
        operands, upstream = wanted[: len(self.slots)], inputs[len(self.slots) :]
        with torch.enable_grad():
            made = self._made(operands)
            given = [one.clone() for one in upstream]
            found = backward_of(made, given, operands, create_graph=is_followed)
        made_by = [one.grad_fn for one in found if one is not None and one.grad_fn is not None]
        # Torch raises only where such a node has something behind it that a gradient is asked for.
        if any(map(is_barred, nearest(made_by))):
            raise MarkedOnce("its backward is marked once_differentiable")
        return [
            torch.zeros_like(one) if got is None else dense_of(got, is_followed)
            for one, got in zip(operands, found, strict=True)
        ]
