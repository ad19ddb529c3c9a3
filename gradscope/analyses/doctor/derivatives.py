"""Whether the backward of a custom Function agrees with its forward, as ``check`` answers it.

The operands of a call are kept when it is made, small ones as copies; before the next backward it
is examined, by the same engine.  What the Function is given here is what it has left: an operand
that it changes in place is examined at its new value.
"""

from __future__ import annotations

import dis
import math
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import torch
from torch.utils import _pytree as pytree

from gradscope.analyses.doctor.captured_call import Origins
from gradscope.autograd.nodes import Walked
from gradscope.autograd.tensors import requires_grad
from gradscope.derivatives.call import (
    HIDDEN,
    Call,
    OutsideValue,
    TapeSlot,
    is_tensor,
    is_usable,
    made_again,
    problem_of,
    random_states,
)
from gradscope.derivatives.double_precision import value_of
from gradscope.derivatives.rerun import codes_of
from gradscope.derivatives.stale import Own, own_gradients
from gradscope.derivatives.verdict import CallExamination, Limit
from gradscope.errors import described
from gradscope.handlers import let_pass
from gradscope.model.studies import CallCheck
from gradscope.recording.source import Site
from gradscope.recording.torch_call import TorchCall
from gradscope.words import duration, either, listed

LARGEST = 10_000_000
"""Elements of a Function that is checked unasked, operands and results together: some 100 bytes an
element are needed."""

LONGEST = 10.0
"""Seconds that each may take."""

ALL = Limit(math.inf, "gradscope check")
"""And where all are to be checked."""

MOST_SECONDS = 30.0
"""What a run may spend on all of them, unasked."""

MAX_CALLS = 50
"""Functions that are checked between two backward calls, each once a place."""

MAX_NAMESAKES = 8
"""Functions of one name that are checked at one place."""

_Key = tuple[str, str, int]
"""Module, name and place of a Function."""


class Derivatives:
    """The custom Functions of a run, each checked once a place.

    Args:
        check_all: whatever their size, and however long it takes.
    """

    def __init__(self, check_all: bool) -> None:
        way = either("--check", "gradscope.check(root, every_call=True)")
        unasked = Limit(LARGEST, way, LONGEST)
        self._limit, self._left = (ALL, math.inf) if check_all else (unasked, MOST_SECONDS)
        self._met: dict[_Key, list[weakref.ref[Any]]] = {}
        self._waiting: list[tuple[_Key, Call]] = []
        self.checked: list[tuple[range, int, CallCheck]] = []
        """What came of each: the sequence numbers of the call, its place, and the answer."""
        self.returns: dict[str, Site] = {}
        """The last ``return`` in the backward of each that is wrong."""
        self.uncompared: dict[tuple[str, int, int], str] = {}
        """Why a Function was not compared, by its name and place, and the order of the
        derivative."""

    def note(self, seen: TorchCall) -> None:
        """A custom Function has made a node."""
        function = seen.func.__self__
        # Several of one name, as a function makes them; but a program may make one in each step.
        key = (function.__module__, function.__qualname__, seen.place)
        known = self._met.setdefault(key, [])
        if any(one() is function for one in known):
            return
        if len(known) >= MAX_NAMESAKES or len(self._waiting) >= MAX_CALLS:
            self._note_uncompared(function.__name__, seen.place, 1, "there are too many of them")
            return
        if torch._C._functorch.peek_interpreter_stack() is not None:
            self._note_uncompared(function.__name__, seen.place, 1, "a transform runs it")
            return
        known.append(weakref.ref(function))
        self._waiting.append((key, _kept(seen, self._limit)))

    def end_step(self) -> None:
        """A backward call has been made: what was called before it, and is in no graph that was
        looked at, is let go of, and met again where the program makes it again."""
        for key, call in self._waiting:
            self._met[key] = [one for one in self._met[key] if one() is not call.custom]
        self._waiting.clear()

    def checks(
        self, walked: Walked, positions: Mapping[int, int], is_differentiated: bool
    ) -> list[CallCheck]:
        """What comes of the Functions in a graph, whose nodes are known by their sequence numbers.

        Args:
            walked: the graph.
            positions: the position of a node in it, by its sequence number.
            is_differentiated: the gradient is about to be made with a graph of its own.
        """
        placed = [(key, call, call.nodes(positions)) for key, call in self._waiting]
        self._waiting = [(key, call) for key, call, nodes in placed if not nodes]
        found = list(self._known(positions))
        calls = [(call, nodes) for _, call, nodes in placed if nodes]
        if calls:
            with made_again(call for call, _ in calls):
                found += self._compared(calls, walked, is_differentiated)
        return found

    def _compared(
        self, calls: list[tuple[Call, tuple[int, ...]]], walked: Walked, is_differentiated: bool
    ) -> Iterator[CallCheck]:
        # Asked before anything is run again, while the program's own state is as it left it.
        own = [own_gradients(call, [walked.nodes[n] for n in nodes]) for call, nodes in calls]
        for (call, nodes), given in zip(calls, own, strict=True):
            for check in self._checks_of(call, nodes, given, is_differentiated):
                if check.verdict == "not checked":
                    self._note_uncompared(check.function, call.place, check.order, check.reason)
                if check.verdict == "wrong" and (end := _returning(call.custom)) is not None:
                    self.returns[check.function] = end
                self.checked.append((range(call.first, call.end), call.place, check))
                yield check

    def _checks_of(
        self, call: Call, nodes: tuple[int, ...], own: Own | None, is_differentiated: bool
    ) -> Iterator[CallCheck]:
        began = time.monotonic()
        if self._left <= 0 and not call.problem:
            call.problem = (
                f"{duration(MOST_SECONDS)} were spent on others; {self._limit.option} takes it too"
            )
        examined = CallExamination(call, _value_of, lambda _: "", own, self._limit)
        try:
            yield from examined.check(nodes, is_differentiated)
        except Exception as error:  # whatever the Function's own code has led to
            let_pass(error)
            yield CallCheck(nodes, call.name, "not checked", (), f"it raised {described(error)}")
        self._left -= time.monotonic() - began

    def _known(self, positions: Mapping[int, int]) -> Iterator[CallCheck]:
        """What was found of Functions in an earlier graph, and that are in this one, too."""
        for made, _, check in self.checked:
            nodes = tuple(sorted(positions[one] for one in made if one in positions))
            if nodes:
                yield msgspec.structs.replace(check, nodes=nodes)

    # ------------------------------------------------------------------ what came of them

    def told(self, shown: Iterable[CallCheck], origins: Origins) -> Iterator[CallCheck]:
        """The answers of the graph ``shown``, and those of other graphs."""
        every = [(check, None) for check in shown] + [(one, at) for _, at, one in self.checked]
        met: set[tuple[str, int, str]] = set()
        for check, place in every:
            key = (check.function, check.order, check.verdict)
            returned = origins.of(self.returns.get(check.function))
            if place is None:
                yield msgspec.structs.replace(check, returned=returned)
            elif key not in met:
                origin = origins.of(place)
                yield msgspec.structs.replace(check, nodes=(), origin=origin, returned=returned)
            met.add(key)

    def in_words(self, origins: Origins) -> Iterator[str]:
        """The Functions that were not compared with finite differences, and why."""
        by_reason: dict[str, list[str]] = {}
        for (name, place, order), reason in self.uncompared.items():
            line = origins.line(place)
            what = f"double backward of {name}" if order == 2 else name
            by_reason.setdefault(reason, []).append(f"{what} ({line})" if line else what)
        for reason, names in by_reason.items():
            yield f"not compared with finite differences: {listed(names)}, because {reason}"

    def _note_uncompared(self, name: str, place: int, order: int, reason: str) -> None:
        # What is torch's own is taken for right.
        if not reason.endswith(HIDDEN):
            self.uncompared.setdefault((name, place, order), reason)


def _returning(function: Any) -> Site | None:
    """The line of the last ``return`` in a Function's backward."""
    for code in codes_of(function)[1:]:
        ends = (one for one in dis.get_instructions(code) if one.opname.startswith("RETURN_"))
        lines = [one.positions.lineno or 0 for one in ends if one.positions is not None]
        if any(lines):
            return Site(code, -max(lines))
    return None


def _kept(seen: TorchCall, limit: Limit) -> Call:
    """A call with its operands, small ones copied."""
    leaves, spec = pytree.tree_flatten((seen.args, seen.kwargs))
    tensors = {id(one): one for one in leaves if is_tensor(one)}
    elements = sum(one.numel() for one in (*tensors.values(), *seen.results))
    problem = problem_of(seen.func, leaves) or limit.problem(elements)
    slots = {} if problem else {key: _slot(one) for key, one in tensors.items()}
    return Call(
        seen.func,
        [] if problem else [slots.get(id(one), one) for one in leaves],
        spec,
        [slot for slot in slots.values() if slot.carries],
        seen.place,
        *seen.sequence_range,
        results=[_result(one) for one in pytree.tree_leaves(seen.out)],
        random=random_states(tensors.values()),
        problem=problem,
    )


def _slot(tensor: torch.Tensor) -> TapeSlot:
    given = OutsideValue.without_history(tensor)
    return TapeSlot(given, carries=given.requires_grad)


def _result(one: Any) -> TapeSlot | None:
    return TapeSlot() if is_tensor(one) and requires_grad(one) and is_usable(one) else None


def _value_of(slot: TapeSlot) -> torch.Tensor:
    assert slot.given is not None
    return value_of(slot.given)
