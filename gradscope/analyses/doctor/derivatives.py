"""Whether the backward of a custom Function agrees with its forward, as ``check`` answers it.

The operands of a call are copied when it is made; before the next backward it is examined, by the
same engine.  What the Function is given here is what it has left: an operand that it changes in
place is examined at its new value.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradscope.autograd.tensors import requires_grad
from gradscope.autograd.walk import Walked
from gradscope.derivatives.call import Call, is_tensor, problem_of
from gradscope.derivatives.double_precision import value_of
from gradscope.derivatives.rerun import unnoticed
from gradscope.derivatives.slots import OutsideValue, TapeSlot, is_usable, version_of
from gradscope.derivatives.stale import Own, own_gradients
from gradscope.derivatives.verdict import CallExamination, Limit
from gradscope.errors import described
from gradscope.model.checks import CallCheck
from gradscope.recording.torch_call import TorchCall

SMALL_INPUTS = Limit(4_096, "--check")
"""How large the operands of Functions that are checked unasked may be."""

LARGE_INPUTS = Limit(1_000_000, "gradscope check")
"""And where all are to be checked."""

MAX_CALLS = 50
"""Functions that are checked between two backward calls, each once a place."""

MAX_NAMESAKES = 8
"""Functions of one name that are checked at one place."""


class Derivatives:
    """The custom Functions of a run, each checked once a place."""

    def __init__(self, check_all: bool) -> None:
        self._limit = LARGE_INPUTS if check_all else SMALL_INPUTS
        self._met: dict[tuple[str, str, int], list[weakref.ref[Any]]] = {}
        self._waiting: list[Call] = []

    def note(self, seen: TorchCall) -> None:
        """A custom Function has made a node."""
        function = seen.func.__self__
        # Several of one name, as a function makes them; but a program may make one in each step.
        known = self._met.setdefault((function.__module__, function.__qualname__, seen.place), [])
        is_known = any(one() is function for one in known)
        if is_known or len(known) >= MAX_NAMESAKES or len(self._waiting) >= MAX_CALLS:
            return
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return
        known.append(weakref.ref(function))
        self._waiting.append(_kept(seen, self._limit))

    def start_step(self) -> None:
        """What was called before the last backward call is let go of, looked at or not."""
        self._waiting.clear()

    def checks(self, walked: Walked, positions: Mapping[int, int]) -> list[CallCheck]:
        """Check what has been met since the last time and is in this graph, whose nodes are known
        by their sequence numbers."""
        waiting, self._waiting = self._waiting, []
        placed = [(call, nodes) for call in waiting if (nodes := call.nodes(positions))]
        if not placed:
            return []
        customs = {call.custom for call, _ in placed if not call.problem}
        with unnoticed(customs):
            # Asked before anything is run again, while the program's own state is as it left it.
            own = [own_gradients(call, [walked.nodes[n] for n in nodes]) for call, nodes in placed]
            return [_checked(*one, given) for one, given in zip(placed, own, strict=True)]


def _kept(seen: TorchCall, limit: Limit) -> Call:
    """A call with copies of its operands."""
    leaves, spec = pytree.tree_flatten((seen.args, seen.kwargs))
    tensors = {id(one): one for one in leaves if is_tensor(one)}
    elements = sum(one.numel() for one in tensors.values() if requires_grad(one))
    problem = problem_of(seen.func, leaves) or limit.problem(elements)
    slots = {} if problem else {key: _copied(one) for key, one in tensors.items()}
    call = Call(
        seen.func,
        [] if problem else [slots.get(id(one), one) for one in leaves],
        spec,
        [slot for slot in slots.values() if slot.carries],
        seen.place,
        *seen.sequence_range,
        results=[_result(one) for one in pytree.tree_leaves(seen.out)],
        random=torch.get_rng_state(),
        problem=problem,
    )
    for device in {one.device for one in tensors.values() if one.device.type == "cuda"}:
        call.random_on[device] = torch.cuda.get_rng_state(device)
    return call


def _copied(tensor: torch.Tensor) -> TapeSlot:
    value = tensor.detach().clone()
    given = OutsideValue(value, version_of(value), requires_grad(tensor))
    return TapeSlot(given, carries=given.requires_grad)


def _result(one: Any) -> TapeSlot | None:
    return TapeSlot() if is_tensor(one) and requires_grad(one) and is_usable(one) else None


def _checked(call: Call, nodes: tuple[int, ...], own: Own | None) -> CallCheck:
    try:
        return CallExamination(call, _value_of, lambda _: "", own).check(nodes)
    except Exception as error:  # whatever the Function's own code has led to
        return CallCheck(nodes, call.name, "not checked", (), f"it raised {described(error)}")


def _value_of(slot: TapeSlot) -> torch.Tensor:
    assert slot.given is not None
    return value_of(slot.given)
