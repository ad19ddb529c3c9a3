"""The verdict on one call: what backward gives beside finite differences, and what it means where
the two differ.

Knows nothing of the rest of the program, nor of which calls are worth a look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch

from gradscope.derivatives.call import Call
from gradscope.derivatives.compare import Compared
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.forms import FORMS
from gradscope.derivatives.single_call import InputGradients, SingleCall
from gradscope.derivatives.slots import TapeSlot
from gradscope.derivatives.stale import Own, beside_own
from gradscope.model.checks import (
    MEANT,
    WRITES_UPSTREAM,
    CallCheck,
    GradientComparison,
    Verdict,
)

_RANKS: tuple[Verdict, ...] = ("wrong", "kink", "unresolved", "right")

Told = tuple[Verdict, tuple[GradientComparison, ...], str]
"""The verdict on a call, its inputs, and the reason."""

LEFT = "right when run alone: in the program it used what another call had left"
FLAT = "its forward is flat here, so that backward stands in for a derivative"
SAMPLE = (
    "it draws a sample, and torch gives samples no gradient: rsample of torch.distributions has "
    "one, as has mean + std * torch.randn_like(mean)"
)
BY_DISTRIBUTION = (
    "it draws a sample, and its gradient is that of the distribution, not of this one draw"
)
BY_FREQUENCY = "scale_grad_by_freq divides the gradient of each row by how often it is looked up"
OF_TORCH = (
    "an operation of torch itself: it may assume something of its operands that does not hold "
    "here, such as indices that all differ, or memory that does not overlap"
)


class Limit(NamedTuple):
    """How many elements the operands of a call may have, and the option that takes more."""

    elements: float
    option: str

    def problem(self, elements: int) -> str:
        """Why a call with so many is not checked; "" when it is."""
        if elements <= self.elements:
            return ""
        return f"its operands have {elements:,} elements; {self.option} takes it too"


UNLIMITED = Limit(math.inf, "")


class CallExamination:
    """One call, to be compared with finite differences.

    Args:
        call: the call.
        operands: what it takes, in double precision.
        name_of: what the program calls an operand.
        own: of a custom Function the gradients that the program's own node gives, if known.
        limit: how large its operands may be.

    ``reads_half``: it was seen to read one triangle only of an operand.
    """

    def __init__(
        self,
        call: Call,
        operands: Callable[[TapeSlot], torch.Tensor],
        name_of: Callable[[TapeSlot], str],
        own: Own | None = None,
        limit: Limit = UNLIMITED,
    ) -> None:
        self.reads_half = False
        self._call = call
        self._operands = operands
        self._name_of = name_of
        self._own = own
        self._limit = limit

    def check(self, nodes: tuple[int, ...]) -> CallCheck:
        """What comes of it, for the nodes that the call made."""
        try:
            verdict, inputs, reason = self._told()
        except Unrepeatable as error:
            verdict, inputs, reason = "not checked", (), error.what
        return CallCheck(nodes, self._call.name, verdict, inputs, reason)

    def _told(self) -> Told:
        call = self._call
        if call.is_backward:
            raise Unrepeatable("a backward pass made it; only the whole program covers it")
        if call.problem:
            raise Unrepeatable(call.problem)
        elements = sum(self._operands(slot).numel() for slot in call.inputs)
        if too_large := self._limit.problem(elements):
            raise Unrepeatable(too_large)
        alone = SingleCall(call, self._operands)
        if alone.is_random():
            return "random", (), "two runs with the same random state give different results"
        try:
            return self._compared(alone)
        except Unrepeatable:
            if call.is_torchs:
                self._note_half_read(alone, range(len(alone.inputs)))
            raise

    def _compared(self, alone: SingleCall) -> Told:
        call = self._call
        gradients = alone.gradients()
        compared = Compared(alone, gradients)
        names = [self._name_of(slot) for slot in alone.slots]
        inputs = tuple(compared.inputs(names))
        verdict = _worst(inputs)
        if gradients.changed_upstream:
            return "wrong", inputs, WRITES_UPSTREAM
        if verdict == "wrong" and call.is_torchs:
            told = _of_torch(call, gradients, compared, inputs)
            return told or self._assumed(alone, compared, inputs)
        if verdict == "wrong":
            return _meant(call, alone, compared, inputs)
        # In double precision torch draws other numbers from the same random state.
        own = None if alone.draws else self._own
        stale = None if own is None else beside_own(call, alone, gradients, own, inputs)
        return (verdict, inputs, "") if stale is None else ("wrong", stale, LEFT)

    def _assumed(
        self, alone: SingleCall, compared: Compared, inputs: tuple[GradientComparison, ...]
    ) -> Told:
        """A call of torch's own differs: perhaps for steps that it does not expect."""
        wrong = [one.input for one in inputs if one.verdict == "wrong"]
        half_read = self._note_half_read(alone, wrong)
        told, reasons = list(inputs), []
        for position, one in enumerate(inputs):
            pairs = ((form, compared.within(form, one)) for form in FORMS if one.input in half_read)
            form, kept = next((pair for pair in pairs if pair[1] is not None), (None, None))
            if form is not None and kept is not None:
                told[position] = kept
                tensor, name = alone.inputs[one.input], _named(one)
                is_so = "" if form.has(tensor) else ", which it is not"
                reasons.append(
                    f"it reads one triangle of {name} and assumes that it is {form.name(tensor)}"
                    f"{is_so}: moved so that it stays so"
                )
        verdict = _worst(told)
        if verdict == "wrong":
            halves = [
                f"it reads one triangle of {_named(one)} and assumes what the other holds"
                for one in inputs
                if one.input in half_read
            ]
            return verdict, tuple(told), "; ".join(halves) or OF_TORCH
        return verdict, tuple(told), "; ".join(reasons)

    def _note_half_read(self, alone: SingleCall, inputs: Iterable[int]) -> list[int]:
        """Those of some inputs of which one triangle only is read."""
        found = [number for number in inputs if alone.is_half_read(number)]
        self.reads_half |= bool(found)
        return found


def _named(one: GradientComparison) -> str:
    return one.name or f"input {one.input}"


def _worst(inputs: Iterable[GradientComparison]) -> Verdict:
    found = {one.verdict for one in inputs}
    return next((rank for rank in _RANKS if rank in found), "right")


def _of_torch(
    call: Call,
    gradients: InputGradients,
    compared: Compared,
    inputs: tuple[GradientComparison, ...],
) -> Told | None:
    """What a call of torch's own has instead of a derivative, if it has."""
    if compared.is_flat:
        return "meant", inputs, FLAT  # such as gumbel_softmax with hard=True
    wrong = [gradients.of_inputs[one.input] for one in inputs if one.verdict == "wrong"]
    if call.draws:
        has_some = any(one is not None and bool(one.any()) for one in wrong)
        return "meant", inputs, BY_DISTRIBUTION if has_some else SAMPLE
    if call.option("scale_grad_by_freq"):
        return "meant", inputs, BY_FREQUENCY
    return None


def _meant(
    call: Call, alone: SingleCall, compared: Compared, inputs: tuple[GradientComparison, ...]
) -> Told:
    """The backward of a Function of the program differs: perhaps it is made to."""
    wrong = [one for one in inputs if one.verdict == "wrong"]
    if compared.is_flat:
        return "meant", inputs, FLAT
    if call.custom is not None and any(alone.is_identity(one.input) for one in wrong):
        return "meant", inputs, "its forward is the identity, so that it is there for its backward"
    if MEANT.search(call.name) and all(one.numeric == 0 for one in wrong):
        return "meant", inputs, "its forward is flat there, and its name says that this is meant"
    return "wrong", inputs, ""
