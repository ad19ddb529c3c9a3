"""One torch call of the program, as everything that is remembered of it is read from; and which
call made each autograd node, as ranges of sequence numbers, by which nothing of the program is kept
alive.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from types import FrameType
from typing import Any

import msgspec
import torch

from gradscope.autograd.tensors import flat_tensors
from gradscope.recording.places import Places


class TorchCall(msgspec.Struct):
    """A call that has just returned.

    ``sequence_range`` bounds the sequence numbers of the nodes it made: none where both are equal.
    ``frame`` is the one that made the call, which may be torch's own.  ``function`` is torch's
    name, where somebody has looked it up.
    """

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    sequence_range: tuple[int, int]
    out: Any
    frame: FrameType
    places: Places
    function: str = ""
    # Not yet looked for; -1 is an answer.
    _place: int = -2
    _operands: list[torch.Tensor] | None = None
    _results: list[torch.Tensor] | None = None

    @property
    def place(self) -> int:
        """The number of the place in the program that made the call; -1 where none is known."""
        if self._place == -2:
            self._place = self.places.number_around(self.frame)
        return self._place

    @property
    def user(self) -> FrameType | None:
        """The frame of the program that stands at this place."""
        return self.places.user_frame(self.frame)

    @property
    def operands(self) -> list[torch.Tensor]:
        if self._operands is None:
            given = (self.args, self.kwargs) if self.kwargs else (self.args,)
            self._operands = flat_tensors(*given)
        return self._operands

    @property
    def results(self) -> list[torch.Tensor]:
        if self._results is None:
            out = self.out
            # Nearly every call returns one tensor.
            self._results = [out] if isinstance(out, torch.Tensor) else flat_tensors(out)
        return self._results

    @property
    def in_graph(self) -> bool:
        return self.sequence_range[0] != self.sequence_range[1]


def name_of_call(func: Any) -> str:
    """Torch's name of a function: ``relu``, ``add`` for ``__add__``, ``data`` for the property."""
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


MAX_SPANS = 2_000_000
"""Calls remembered; older ones are forgotten by halves, so that a long training cannot fill
memory."""

MAX_LATEST = 3_000
"""Numbers of calls that wait before they are stored together."""


class SequenceSpan(msgspec.Struct, frozen=True, gc=False):
    """One torch call that made nodes: those with sequence numbers in ``first <= n < end``.

    ``place`` is a number of :class:`~gradscope.recording.places.Places`, -1 where none is known.
    ``is_backward``: a backward pass that ran with ``create_graph`` made them; ``forward`` is then
    the sequence number of the node whose backward did, -1 where it was not seen.
    """

    first: int
    end: int
    place: int
    is_backward: bool
    forward: int = -1


class Spans:
    """The calls of one thread, in the order of the nodes that they made."""

    def __init__(self) -> None:
        # An array, because eight bytes a number are what makes two million calls bearable; one
        # alone, because a signal handler of the program may raise between any two steps of ours:
        # first, end and place of each call, one after another.
        self._numbers = array("q")
        self._firsts: array[int] | None = None
        self.latest: list[int] = []
        """The numbers of what came last, and is not in it yet: to add to an array takes several
        times as long.  Who hears of every call may add to it himself, if he has it settled now and
        then."""
        # Not a fourth number: most programs have no node that backward made.
        self._backward: dict[int, int] = {}

    def __len__(self) -> int:
        return (len(self._numbers) + len(self.latest)) // 3

    def add(
        self, first: int, end: int, place: int, is_backward: bool = False, forward: int = -1
    ) -> None:
        """Note that the nodes ``first <= n < end`` were made by one call.

        Calls that were made inside it, and are known already, keep their nodes.  ``is_backward``:
        the call was a backward pass that ran with ``create_graph``, or the part of it that the
        node ``forward`` made.
        """
        if not is_backward:
            self.latest.extend((first, end, place))
            if len(self.latest) > MAX_LATEST:
                self.settle()
            return
        # Nearly every pass makes no node, and what came last may wait.
        if first < end:
            self.settle()
            self._place(first, end, place, is_backward, forward)

    def _place(
        self, first: int, end: int, place: int, is_backward: bool = False, forward: int = -1
    ) -> None:
        """Put a call where it belongs."""
        numbers = self._numbers
        position = len(numbers) // 3
        while position and numbers[3 * position - 2] > first:
            # The node of a custom Function is made before what its forward calls, and so is older.
            inner = numbers[3 * position - 2]
            position -= 1
            self._insert(position + 1, (inner, end, place), is_backward, forward)
            end = min(end, numbers[3 * position])
        self._insert(position, (first, end, place), is_backward, forward)

    def settle(self) -> array[int]:
        """All numbers, the latest among them."""
        latest, numbers = self.latest, self._numbers
        if latest:
            self._firsts = None
            end, row = numbers[-2] if numbers else 0, list[int]()
            for one in zip(latest[::3], latest[1::3], latest[2::3], strict=True):
                # A call ends after those it made, so inner ones are known, and the last ones:
                # nearly always there is none.  It is known itself where a handler has raised below.
                if end <= one[0] < one[1]:
                    row += one
                    end = one[1]
                    continue
                numbers.extend(array("q", row))
                row.clear()
                self._place(*one)
                end = numbers[-2] if numbers else 0
            numbers.extend(array("q", row))
            latest.clear()
            if len(self) > MAX_SPANS:
                self._forget(MAX_SPANS // 2)
        return numbers

    def _insert(
        self, position: int, span: tuple[int, int, int], is_backward: bool, forward: int
    ) -> None:
        first, end, _ = span
        if first >= end:
            return
        if is_backward:
            self._backward[first] = forward
        self._firsts = None
        self._numbers[3 * position : 3 * position] = array("q", span)

    @property
    def is_empty(self) -> bool:
        return not (self.latest or self._numbers)

    def of(self, sequence: int) -> SequenceSpan | None:
        """The call that made the node with this sequence number, or None when it was not seen."""
        numbers = self.settle() if self.latest else self._numbers
        firsts = self._firsts
        if firsts is None:
            firsts = self._firsts = numbers[::3]
        position = bisect_right(firsts, sequence) - 1
        if position < 0:
            return None
        end = numbers[3 * position + 1]
        if sequence >= end:
            return None
        first, place = firsts[position], numbers[3 * position + 2]
        if self._backward and first in self._backward:
            return SequenceSpan(first, end, place, True, self._backward[first])
        return SequenceSpan(first, end, place, False)

    def keep_last(self, count: int) -> None:
        """Forget all but so many calls, once there are twice as many."""
        if len(self) > 2 * count:
            self.settle()
            self._forget(len(self) - count)

    def _forget(self, count: int) -> None:
        self._firsts = None
        del self._numbers[: 3 * count]
        oldest = self._numbers[0]
        self._backward = {
            first: forward for first, forward in self._backward.items() if first >= oldest
        }
