"""Which torch call made each autograd node, remembered as ranges of sequence numbers.

Numbers only, so that nothing of the program is kept alive.  Knows nothing of frames or tensors.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

import msgspec

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
        """Whether no call has made a node yet."""
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
