"""Single calls: which are checked, and what comes of each.

Knows nothing of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

from gradscope.capture.checking.alone import Alone, Gradients, cotangent, real
from gradscope.capture.checking.call import Call
from gradscope.capture.checking.compare import Compared
from gradscope.capture.checking.replay import Unrepeatable
from gradscope.capture.checking.request import Check
from gradscope.capture.checking.slots import Slot
from gradscope.capture.nodes import outputs_of
from gradscope.checks import MEANT, CallCheck, Comparison, Verdict
from gradscope.plain import number

LARGE = 10_000_000
"""Elements of all operands up to which a built-in call is checked unasked."""

MAX_CUSTOM = 200
"""Calls of custom Functions that are checked unasked."""

STALE = {torch.float64: 1e-6, torch.float32: 1e-2}
"""How far the gradients of the program's own node may be from those in float64, relative."""

_RANKS: tuple[Verdict, ...] = ("wrong", "kink", "unresolved", "right")

Own = list[torch.Tensor | None]


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


class Examined:
    """Checks calls while the tape runs.

    Args:
        selected: the calls to check, with their nodes in the graph.
        own: of custom Functions the gradients that the program's own node gives, if known.
        name_of: what the program calls an operand.
        selection: says what is too large.
    """

    def __init__(
        self,
        selected: Mapping[Call, tuple[int, ...]],
        own: Mapping[Call, Own],
        name_of: Callable[[Slot], str],
        selection: Selection,
    ) -> None:
        self.found: list[CallCheck] = []
        self._selected = selected
        self._own = own
        self._name_of = name_of
        self._selection = selection

    def visit(self, call: Call, operands: Callable[[Slot], torch.Tensor]) -> None:
        """A call is about to be made again: check it, if it is one of those."""
        nodes = self._selected.get(call)
        if nodes is None:
            return
        function = function_name(call)
        try:
            verdict, inputs, reason = self._checked(call, operands)
        except Unrepeatable as error:
            verdict, inputs, reason = "not checked", (), error.what
        self.found.append(CallCheck(nodes, function, verdict, inputs, reason))

    def _checked(
        self, call: Call, operands: Callable[[Slot], torch.Tensor]
    ) -> tuple[Verdict, tuple[Comparison, ...], str]:
        if call.is_backward:
            raise Unrepeatable("a backward pass made it; only the whole program covers it")
        if call.problem:
            raise Unrepeatable(call.problem)
        elements = sum(operands(slot).numel() for slot in call.inputs)
        if self._selection.is_too_large(call, elements):
            raise Unrepeatable(f"its operands have {elements:,} elements; --all takes it too")
        alone = Alone(call, operands)
        if alone.is_random():
            return "random", (), "two runs with the same random state give different results"
        gradients = alone.gradients()
        compared = Compared(alone, gradients)
        names = [self._name_of(slot) for slot in alone.slots]
        inputs = tuple(compared.inputs(names))
        found = {one.verdict for one in inputs}
        verdict: Verdict = next((rank for rank in _RANKS if rank in found), "right")
        if gradients.changed_upstream:
            return "wrong", inputs, "its backward changes the gradient it is given in place"
        if verdict == "wrong":
            return _meant(call, alone, compared, inputs)
        if call not in self._own:
            return verdict, inputs, ""
        return _beside_own(alone, gradients, self._own[call], verdict, inputs, call)


def function_name(call: Call) -> str:
    """What was called, in a word."""
    if call.custom is not None:
        return str(call.custom.__name__)
    name = str(getattr(call.function, "__name__", call.function))
    owner = getattr(call.function, "__self__", None)
    return str(getattr(owner, "__name__", name)) if name in ("__get__", "__set__") else name


def _meant(
    call: Call, alone: Alone, compared: Compared, inputs: tuple[Comparison, ...]
) -> tuple[Verdict, tuple[Comparison, ...], str]:
    """Backward differs: perhaps it is made to."""
    reason = ""
    if compared.is_flat:
        # Also torch's own, such as gumbel_softmax with hard=True.
        reason = "its forward is flat here, so that backward stands in for a derivative"
    elif call.custom is None:
        pass
    elif any(alone.is_identity(one.input) for one in inputs if one.verdict == "wrong"):
        reason = "its forward is the identity, so that it is there for its backward"
    elif MEANT.search(call.custom.__name__) and all(
        one.numeric == 0 for one in inputs if one.verdict == "wrong"
    ):
        reason = "its forward is flat there, and its name says that this is meant"
    return ("meant" if reason else "wrong"), inputs, reason


# ---------------------------------------------------------------- the program's own node


def own_gradients(call: Call, nodes: Iterable[LiveNode]) -> Own | None:
    """What the node that a custom Function left in the graph gives for fixed upstream gradients,
    one gradient an argument; None when that cannot be asked."""
    node: Any = next((one for one in nodes if isinstance(one, BackwardCFunction)), None)
    if node is None or call.problem:
        return None
    upstream = [_upstream(described) for described in outputs_of(node)]
    try:
        with torch.no_grad():
            found = node.apply(*upstream)
    except Exception:
        return None
    found = found if isinstance(found, tuple) else (found,)
    still = [one.detach().clone() if isinstance(one, torch.Tensor) else None for one in found]
    return still if len(still) == len(call.leaves) else None


def _upstream(described: Any) -> torch.Tensor:
    like = torch.empty(tuple(described.shape), dtype=described.dtype, device=described.device)
    if not (like.is_floating_point() or like.is_complex()):
        return torch.zeros_like(like)
    return cotangent(like).to(like.dtype)


def _beside_own(
    alone: Alone,
    gradients: Gradients,
    own: Own,
    verdict: Verdict,
    inputs: tuple[Comparison, ...],
    call: Call,
) -> tuple[Verdict, tuple[Comparison, ...], str]:
    """The gradients of a fresh run beside those of the node that is in the graph."""
    for comparison in inputs:
        slot, fresh = alone.slots[comparison.input], gradients.of_inputs[comparison.input]
        mine = [one for leaf, one in zip(call.leaves, own, strict=True) if leaf is slot]
        if fresh is None or len(mine) != 1 or mine[0] is None:
            continue
        tolerance = STALE.get(mine[0].dtype)
        if tolerance is None or not _fits(mine[0], fresh):
            continue
        left, right = real(mine[0]).double(), real(fresh)
        left = left.sum_to_size(right.shape)
        difference = (left - right).abs()
        if float(difference.norm()) <= tolerance * float(right.norm()) + 1e-7:
            continue
        index = tuple(int(i) for i in torch.unravel_index(difference.argmax(), right.shape))
        analytic, numeric = float(left[index]), float(right[index])
        error = abs(analytic - numeric) / max(abs(analytic), abs(numeric))
        told = Comparison(
            comparison.input,
            comparison.name,
            "wrong",
            number(analytic),
            number(numeric),
            number(error),
            index,
        )
        rest = tuple(told if one is comparison else one for one in inputs)
        reason = "right when run alone: in the program it used what another call had left"
        return "wrong", rest, reason
    return verdict, inputs, ""


def _fits(mine: torch.Tensor, fresh: torch.Tensor) -> bool:
    """Whether torch would sum one gradient to the shape of the other, as it does by itself."""
    try:
        return fresh.expand(mine.shape).shape == mine.shape
    except RuntimeError:
        return False
