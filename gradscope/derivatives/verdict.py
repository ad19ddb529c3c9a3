"""The verdict on one call: what backward gives beside finite differences, and what it means where
the two differ.

Knows nothing of the rest of the program, nor of which calls are worth a look.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from gradscope.derivatives.call import FORMS, Call, TapeSlot
from gradscope.derivatives.compare import Compared, worst
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.single_call import BackwardAlone, MarkedOnce, SingleCall
from gradscope.derivatives.stale import Own, beside_own
from gradscope.model.studies import (
    IGNORES_UPSTREAM,
    MEANT,
    WRITES_UPSTREAM,
    CallCheck,
    GradientComparison,
    Verdict,
)
from gradscope.words import duration

Told = tuple[Verdict, tuple[GradientComparison, ...], str]
"""The verdict on a call, its inputs, and the reason."""

UPSTREAM = "the upstream gradient"
RANDOM = "two runs with the same random state give different results"
LEFT = "right when run alone, not in the program: as where it uses what another call has left"
FLAT = "its forward is constant here, so that backward returns a substitute for its derivative"
IDENTITY = "its forward is the identity, so that only its backward matters"
NAMED = "its forward is constant there, and its name says that this is intended"
SUBSTITUTED = "its forward is constant by an input that gets a gradient: that is a substitute"
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


RUNS, RUNS_AN_INPUT = 4, 4
"""How often a call is made again at least, and more often for each input."""


def too_coarse(inside: torch.dtype) -> str:
    """Why nothing can be said of a Function that casts to so little precision; "" where it can."""
    if inside in (torch.float64, torch.float32):
        return ""
    kind = str(inside).removeprefix("torch.")
    return f"it computes in {kind} inside, also when it is given float64"


class Limit(NamedTuple):
    """How many elements the operands of a call may have, how many ``seconds`` it may take to
    compare it, and the option that takes more."""

    elements: float
    option: str
    seconds: float = math.inf

    def problem(self, elements: int) -> str:
        """Why a call with so many is not checked; "" when it is."""
        if elements <= self.elements:
            return ""
        return f"it computes with {elements:,} elements; {self.option} takes it too"

    def slowness(self, once: float, inputs: int) -> str:
        """Why a call that takes so many seconds once is not checked; "" when it is."""
        if once * (RUNS + RUNS_AN_INPUT * inputs) <= self.seconds:
            return ""
        return f"one run of it in float64 takes {duration(once)}; {self.option} takes it too"


UNLIMITED = Limit(math.inf, "")


@dataclass
class CallExamination:
    """One call, to be compared with finite differences.

    Args:
        call: the call.
        operands: what it takes, in double precision.
        name_of: what the program calls an operand.
        own: of a custom Function the gradients that the program's own node gives, if known.
        limit: how large its operands may be, and how long it may take.

    ``reads_half``: it was seen to read one triangle only of an operand.
    """

    call: Call
    operands: Callable[[TapeSlot], torch.Tensor]
    name_of: Callable[[TapeSlot], str]
    own: Own | None = None
    limit: Limit = UNLIMITED
    reads_half: bool = field(default=False, init=False)
    _until: float = field(default=math.inf, init=False)

    def check(self, nodes: tuple[int, ...], twice: bool = False) -> list[CallCheck]:
        """What comes of it, for the nodes that the call made.

        ``twice``: if that is right, double backward of a custom Function as well: its backward, as
        a function of its own, beside differences of it; not where it says that it cannot be
        differentiated.
        """
        found: list[CallCheck] = []
        for order, kind in ((1, SingleCall), (2, BackwardAlone)):
            if found and not (twice and found[0].verdict in ("right", "kink")):
                break
            try:
                verdict, inputs, reason = self._told(kind)
            except MarkedOnce:
                break
            except Unrepeatable as error:
                verdict, inputs, reason = "not checked", (), error.what
            found.append(CallCheck(nodes, self.call.name, verdict, inputs, reason, order=order))
        return found

    def _repeated(self, kind: type[SingleCall]) -> SingleCall:
        """The call, made again once.

        Raises:
            Unrepeatable: it cannot be made, or not in the time there is.
        """
        call = self.call
        if call.problem:
            raise Unrepeatable(call.problem)
        elements = sum(self.operands(slot).numel() for slot in call.inputs)
        if too_large := self.limit.problem(elements):
            raise Unrepeatable(too_large)
        began = time.monotonic()
        alone = kind(call, self.operands)
        if too_slow := self.limit.slowness(time.monotonic() - began, len(alone.inputs)):
            raise Unrepeatable(too_slow)
        self._until = began + self.limit.seconds
        return alone

    def _told(self, kind: type[SingleCall]) -> Told:
        if self.call.is_backward:
            raise Unrepeatable("a backward pass made it; only the whole program covers it")
        alone = self._repeated(kind)
        if alone.is_random():
            return "random", (), RANDOM
        names = [self.name_of(slot) for slot in alone.slots]
        names += [UPSTREAM] * (len(alone.inputs) - len(names))
        try:
            gradients = alone.gradients()
            compared = Compared(alone, gradients, names, self._until)
            if self.call.inside == torch.float32 and compared.verdict != "right":
                alone.is_coarse = True
                compared = Compared(alone, gradients, names, self._until)
        except Unrepeatable:
            if self.call.is_torchs:
                self.reads_half = any(map(alone.is_half_read, range(len(alone.inputs))))
            raise
        if kind is BackwardAlone:
            self._refuse_coarse(compared.verdict)
            return compared.verdict, compared.inputs, ""
        return self._judged(compared)

    def _refuse_coarse(self, verdict: Verdict) -> None:
        """Raises Unrepeatable where what differs may do so by the precision inside alone."""
        if (why := too_coarse(self.call.inside)) and verdict != "right":
            raise Unrepeatable(why)

    def _judged(self, compared: Compared[SingleCall]) -> Told:
        """What the comparison of the backward of a call means."""
        call, alone, gradients = self.call, compared.alone, compared.gradients
        verdict, inputs = compared.verdict, compared.inputs
        # In float64 what casts the gradient writes into a copy.
        if gradients.changed_upstream or (self.own is not None and self.own.writes):
            return "wrong", inputs, WRITES_UPSTREAM
        self._refuse_coarse(verdict)
        if verdict == "wrong" and call.is_torchs:
            if meant := self._meant(compared):
                return "meant", inputs, meant
            return self._assumed(compared)
        if verdict == "wrong":
            # A Function may hand a symmetric matrix on to a call that reads one triangle.
            assumed = self._assumed(compared, only_symmetric=True)
            if assumed[0] != "wrong":
                return assumed
            # Even a substitute for a derivative is a factor of the upstream gradient.
            if compared.is_flat and alone.ignores_upstream(gradients):
                return "wrong", inputs, IGNORES_UPSTREAM
            meant = self._meant(compared)
            return "meant" if meant else "wrong", inputs, meant
        # Of several results factors that differ have told already; into a loss 1 is sent.
        is_loss = all(one.numel() == 1 and not one.is_complex() for one in alone.first)
        if is_loss and not call.is_torchs and alone.ignores_upstream(gradients):
            return "wrong", inputs, IGNORES_UPSTREAM
        # In double precision torch draws other numbers from the same random state.
        own = None if alone.draws else self.own
        stale = None if own is None else beside_own(call, compared, own)
        return (verdict, inputs, "") if stale is None else ("wrong", stale, LEFT)

    def _meant(self, compared: Compared[SingleCall]) -> str:
        """Why a call that differs is made to; "" where it is not."""
        call, wrong = self.call, compared.wrong
        if compared.is_flat:
            return FLAT  # of torch's own gumbel_softmax with hard=True
        if call.is_torchs and call.draws:
            sent = (compared.gradients.of_inputs[one.input] for one in wrong)
            has_some = any(one is not None and bool(one.any()) for one in sent)
            return BY_DISTRIBUTION if has_some else SAMPLE
        if call.is_torchs:
            return BY_FREQUENCY if call.option("scale_grad_by_freq") else ""
        if call.custom is not None and any(compared.alone.is_identity(one.input) for one in wrong):
            return IDENTITY
        if MEANT.search(call.name) and all(one.numeric == 0 for one in wrong):
            return NAMED
        # A step inside, as of a quantiser that learns its scale; or an input that is handed over
        # for its gradient only: the estimator of a mixture of experts sends to the scores of all
        # what belongs to the probability of the chosen one.
        given = (one.input for one in wrong if one.analytic is not None)
        is_substituted = len(wrong) > 1 and not compared.flat.isdisjoint(given)
        return SUBSTITUTED if is_substituted else ""

    def _assumed(self, compared: Compared[SingleCall], only_symmetric: bool = False) -> Told:
        """A call differs: perhaps for steps that it does not expect.  Torch's own are granted each
        form; a Function of the program that of a matrix which is symmetric."""
        alone = compared.alone
        half_read = [one.input for one in compared.wrong if alone.is_half_read(one.input)]
        told, reasons = list(compared.inputs), []
        for position, one in enumerate(compared.inputs):
            granted = [form for form in FORMS if one.input in half_read]
            if only_symmetric:
                granted = [form for form in granted[:1] if form.has(alone.inputs[one.input])]
            pairs = ((form, compared.within(form, one)) for form in granted)
            form, kept = next((pair for pair in pairs if pair[1] is not None), (None, None))
            if form is not None and kept is not None:
                told[position] = kept
                tensor, name = alone.inputs[one.input], _named(one)
                is_so = "" if form.has(tensor) else ", which it is not"
                reasons.append(
                    f"it reads one triangle of {name} and assumes that it is {form.name(tensor)}"
                    f"{is_so}: moved so that it stays so"
                )
        verdict = worst(told)
        self.reads_half = verdict != "wrong"
        return verdict, tuple(told), "; ".join(reasons) if self.reads_half else OF_TORCH


def _named(one: GradientComparison) -> str:
    return one.name or f"input {one.input}"
