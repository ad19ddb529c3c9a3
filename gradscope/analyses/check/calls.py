"""Single calls: which are checked, and what comes of each.

Knows nothing of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from gradscope.analyses.check.request import Check
from gradscope.derivatives.call import Call
from gradscope.derivatives.compare import Compared
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.forms import FORMS
from gradscope.derivatives.single_call import InputGradients, SingleCall
from gradscope.derivatives.slots import TapeSlot
from gradscope.derivatives.stale import Own, beside_own
from gradscope.model.checks import MEANT, CallCheck, GradientComparison, Verdict

LARGE = 10_000_000
"""Elements of all operands up to which a built-in call is checked unasked."""

MAX_CUSTOM = 200
"""Calls of custom Functions that are checked unasked."""

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
ONLY_ALONE = (
    "on its own it differs, in the program it does not: there it takes no such step, or what the "
    "call leaves open (a sign, a basis) makes no difference"
)


class Selection:
    """Which calls are checked.

    ``repeats`` counts those left out because one at the same place is.
    """

    def __init__(self, asked: Check) -> None:
        self._asked = asked
        self._met: set[tuple[Any, int]] = set()
        self._customs = 0
        self.repeats = 0

    def takes(self, call: Call, nodes: tuple[int, ...]) -> bool:
        """Whether this call, which made these nodes, is to be checked."""
        if self._asked.node is not None:
            return self._asked.node in nodes
        if not nodes or call.is_backward:
            return False
        if self._asked.everything:
            return True
        if call.custom is not None and self._customs < MAX_CUSTOM:
            self._customs += 1
            return True
        key = (call.custom or call.function, call.place)
        is_new = key not in self._met
        self._met.add(key)
        self.repeats += not is_new
        return is_new

    def is_too_large(self, call: Call, elements: int) -> bool:
        """Whether checking it would take too long unasked."""
        asked = self._asked.everything or self._asked.node is not None
        return not asked and call.custom is None and elements > LARGE


class CallChecks:
    """Checks calls while the tape runs.

    Args:
        selected: the calls to check, with their nodes in the graph.
        own: of custom Functions the gradients that the program's own node gives, if known.
        name_of: what the program calls an operand.
        selection: says what is too large.

    ``found`` is what came of each call; ``half_readers`` are the functions that were seen to read
    one triangle only of an operand.
    """

    def __init__(
        self,
        selected: Mapping[Call, tuple[int, ...]],
        own: Mapping[Call, Own],
        name_of: Callable[[TapeSlot], str],
        selection: Selection,
    ) -> None:
        self.found: dict[Call, CallCheck] = {}
        self.half_readers: set[str] = set()
        self._selected = selected
        self._own = own
        self._name_of = name_of
        self._selection = selection

    def visit(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> None:
        """A call is about to be made again: check it, if it is one of those."""
        nodes = self._selected.get(call)
        if nodes is None:
            return
        function = function_name(call)
        try:
            verdict, inputs, reason = self._checked(call, operands)
        except Unrepeatable as error:
            verdict, inputs, reason = "not checked", (), error.what
        self.found[call] = CallCheck(nodes, function, verdict, inputs, reason)

    def _checked(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> Told:
        if call.is_backward:
            raise Unrepeatable("a backward pass made it; only the whole program covers it")
        if call.problem:
            raise Unrepeatable(call.problem)
        elements = sum(operands(slot).numel() for slot in call.inputs)
        if self._selection.is_too_large(call, elements):
            raise Unrepeatable(f"its operands have {elements:,} elements; --all takes it too")
        alone = SingleCall(call, operands)
        if alone.is_random():
            return "random", (), "two runs with the same random state give different results"
        try:
            return self._compared(call, alone)
        except Unrepeatable:
            if call.is_torchs:
                self._note_half_read(call, alone, range(len(alone.inputs)))
            raise

    def _compared(self, call: Call, alone: SingleCall) -> Told:
        gradients = alone.gradients()
        compared = Compared(alone, gradients)
        names = [self._name_of(slot) for slot in alone.slots]
        inputs = tuple(compared.inputs(names))
        verdict = _worst(inputs)
        if gradients.changed_upstream:
            return "wrong", inputs, "its backward changes the gradient it is given in place"
        if verdict == "wrong" and call.is_torchs:
            told = _of_torch(call, gradients, compared, inputs)
            return told or self._assumed(call, alone, compared, inputs)
        if verdict == "wrong":
            return _meant(call, alone, compared, inputs)
        own = self._own.get(call)
        stale = None if own is None else beside_own(call, alone, gradients, own, inputs)
        return (verdict, inputs, "") if stale is None else ("wrong", stale, LEFT)

    def _assumed(
        self,
        call: Call,
        alone: SingleCall,
        compared: Compared,
        inputs: tuple[GradientComparison, ...],
    ) -> Told:
        """A call of torch's own differs: perhaps for steps that it does not expect."""
        wrong = [one.input for one in inputs if one.verdict == "wrong"]
        half_read = self._note_half_read(call, alone, wrong)
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

    def _note_half_read(self, call: Call, alone: SingleCall, inputs: Iterable[int]) -> list[int]:
        """Those of some inputs of which one triangle only is read; noted for the leaves."""
        found = [number for number in inputs if alone.is_half_read(number)]
        if found:
            self.half_readers.add(function_name(call))
        return found


def _named(one: GradientComparison) -> str:
    return one.name or f"input {one.input}"


def _worst(inputs: Iterable[GradientComparison]) -> Verdict:
    found = {one.verdict for one in inputs}
    return next((rank for rank in _RANKS if rank in found), "right")


def function_name(call: Call) -> str:
    """What was called, in a word."""
    if call.custom is not None:
        return str(call.custom.__name__)
    name = str(getattr(call.function, "__name__", call.function))
    owner = getattr(call.function, "__self__", None)
    return str(getattr(owner, "__name__", name)) if name in ("__get__", "__set__") else name


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
    name = function_name(call)
    if compared.is_flat:
        return "meant", inputs, FLAT
    if call.custom is not None and any(alone.is_identity(one.input) for one in wrong):
        return "meant", inputs, "its forward is the identity, so that it is there for its backward"
    if MEANT.search(name) and all(one.numeric == 0 for one in wrong):
        return "meant", inputs, "its forward is flat there, and its name says that this is meant"
    return "wrong", inputs, ""
