"""Making the calls on the tape again, in float64 and with the same random numbers.

What carries no gradient history is held fixed at the value it had, as autograd holds it.  Knows
nothing of derivatives or of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from gradscope.derivatives.call import Call, OutsideValue, TapeSlot
from gradscope.derivatives.double_precision import (
    Tensors,
    Unrepeatable,
    is_wide,
    make_again,
    value_of,
    widened,
)


class Replay:
    """Some calls of the tape, in their order, to be made again as often as needed.

    Args:
        calls: the calls; those whose results go into one of them or into a root are among them.
        roots: what is wanted of them.

    ``failed`` says which calls could not be made; those after them go on with the value that the
    program had, where that is known.
    """

    def __init__(self, calls: Sequence[Call], roots: Iterable[TapeSlot]) -> None:
        self.calls = calls
        self.failed: dict[Call, str] = {}
        self._roots = set(roots)
        self._last = _last_uses(calls, self._roots)
        # A `grad` on the tape needs a graph that it can go through.
        self._with_graph = any(call.is_backward for call in calls)

    def run(
        self,
        moved: Mapping[TapeSlot, torch.Tensor] | None = None,
        visit: Callable[[Call, Callable[[TapeSlot], torch.Tensor]], None] | None = None,
        with_graph: bool = False,
    ) -> dict[TapeSlot, torch.Tensor]:
        """The values of the roots.

        Args:
            moved: values of some leaves to use instead of their own.
            visit: told of every call before it is made, with a way to its operands.
            with_graph: build a graph, so that gradients can be asked for.
        """
        with_graph = with_graph or self._with_graph
        with torch.set_grad_enabled(with_graph):
            run = _TapeRun(self.failed, moved or {}, with_graph)
            for position, call in enumerate(self.calls):
                if visit is not None:
                    visit(call, run.of)
                run.make(call)
                # At once: else all results of the program would be there at the same time.
                for slot in self._last.get(position, ()):
                    run.values.pop(slot, None)
        return {slot: run.of(slot) for slot in self._roots if run.has(slot)}


class _TapeRun:
    """What the slots hold while the tape runs once.

    Args:
        failed: the calls that cannot be made, to be added to.
        known: what some slots hold instead of what the program had.
        with_graph: as for :meth:`Replay.run`.
    """

    def __init__(
        self, failed: dict[Call, str], known: Mapping[TapeSlot, torch.Tensor], with_graph: bool
    ) -> None:
        self.values: dict[TapeSlot, torch.Tensor] = {}
        self._failed = failed
        self._with_graph = with_graph
        # Copies: a call may change one in place.
        self._known = {slot: one.clone() for slot, one in known.items()}
        self._lost: set[TapeSlot] = set()

    def make(self, call: Call) -> None:
        """Make a call again; where it cannot be, go on with what the program had."""
        try:
            # Not tried once more: the tape runs many times, and each time has to go the same way.
            if call in self._failed:
                raise Unrepeatable(self._failed[call])
            self._take(call, make_again(call, self.of))
        except Unrepeatable as error:
            self._failed.setdefault(call, error.what)
            if call.changed is not None:
                self._lost.add(call.changed)
                # Half of the change may have been made.
                self.values.pop(call.changed, None)
            for slot in call.results:
                if slot is not None and slot.result is not None and not slot.result.is_lost:
                    self.values[slot] = widened(slot.result.value)

    def has(self, slot: TapeSlot) -> bool:
        """Whether the value of a slot is known."""
        return slot in self.values or (slot.given is not None and slot not in self._lost)

    def of(self, slot: TapeSlot) -> torch.Tensor:
        """The value of a slot now.

        Raises:
            Unrepeatable: when it is not known.
        """
        found = self.values.get(slot)
        if found is None:
            if slot.given is None or slot in self._lost:
                raise Unrepeatable("its operands come from a call that could not be repeated")
            found = self.values[slot] = self._given(slot, slot.given)
        return found

    def _given(self, slot: TapeSlot, given: OutsideValue) -> torch.Tensor:
        known = self._known.get(slot)
        found = value_of(given) if known is None else known
        if not (self._with_graph and given.requires_grad and is_wide(found)) or found.grad_fn:
            return found
        # Where a graph is built a leaf must not be changed in place; a copy of it may.
        return found.requires_grad_().clone()

    def _take(self, call: Call, out: Tensors) -> None:
        operands = {id(self.values[one]) for one in call.slots if one in self.values}
        for slot, value in zip(call.results, out, strict=True):
            if slot is None or slot is call.changed:
                continue
            if not is_wide(value):
                raise Unrepeatable(f"its result is {value.dtype} also for float64 operands")
            # In the program it was another tensor, here a conversion had nothing to do.
            is_same = id(value) in operands and slot not in call.slots
            self.values[slot] = value.clone() if is_same else value


def _last_uses(calls: Sequence[Call], kept: set[TapeSlot]) -> dict[int, list[TapeSlot]]:
    """After which call each slot is not needed any more, but for those that are kept."""
    last: dict[TapeSlot | None, int] = {}
    for position, call in enumerate(calls):
        last.update(dict.fromkeys((*call.slots, *call.results), position))
    found: dict[int, list[TapeSlot]] = {}
    for slot, position in last.items():
        if slot is not None and slot not in kept:
            found.setdefault(position, []).append(slot)
    return found


def needed(calls: Sequence[Call], sequences: set[int], roots: Iterable[TapeSlot]) -> list[Call]:
    """The calls behind a graph: those that made its nodes, and whose results went into them."""
    # From the last call to the first: what a call takes is wanted of those before it.
    wanted = set(roots)
    memories = {slot.base for slot in wanted}
    found = []
    for call in reversed(calls):
        makes = any(slot in wanted for slot in call.results)
        changes = call.changed is not None and call.changed.base in memories
        if makes or changes or not sequences.isdisjoint(range(call.first, call.end)):
            found.append(call)
            wanted.update(call.slots)
            memories.update(slot.base for slot in call.slots)
    return found[::-1]
