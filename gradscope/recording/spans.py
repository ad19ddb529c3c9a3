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
        # Arrays, because eight bytes a number are what makes two million calls bearable.
        self._firsts, self._ends, self._places = array("q"), array("q"), array("q")
        # Not a fourth array: most programs have no node that backward made.
        self._backward: dict[int, int] = {}

    def add(
        self, first: int, end: int, place: int, is_backward: bool = False, forward: int = -1
    ) -> None:
        """Note that the nodes ``first <= n < end`` were made by one call.

        Calls that were made inside it, and are known already, keep their nodes.  ``is_backward``:
        the call was a backward pass that ran with ``create_graph``, or the part of it that the
        node ``forward`` made.
        """
        # A call ends after those it made, so inner ones are known, and the last ones: nearly always
        # there is none.
        ends = self._ends
        if first < end and not is_backward and not (ends and ends[-1] > first):
            self._firsts.append(first)
            ends.append(end)
            self._places.append(place)
            if len(ends) > MAX_SPANS:
                self._forget(MAX_SPANS // 2)
            return
        position = len(self._firsts)
        while position and self._ends[position - 1] > first:
            # The node of a custom Function is made before what its forward calls, and so is older.
            inner = self._ends[position - 1]
            position -= 1
            self._insert(position + 1, (inner, end), place, is_backward, forward)
            end = min(end, self._firsts[position])
        self._insert(position, (first, end), place, is_backward, forward)
        if len(self._firsts) > MAX_SPANS:
            self._forget(MAX_SPANS // 2)

    def _insert(
        self, position: int, span: tuple[int, int], place: int, is_backward: bool, forward: int
    ) -> None:
        first, end = span
        if first >= end:
            return
        self._firsts.insert(position, first)
        self._ends.insert(position, end)
        self._places.insert(position, place)
        if is_backward:
            self._backward[first] = forward

    @property
    def is_empty(self) -> bool:
        """Whether no call has made a node yet."""
        return not self._ends

    def of(self, sequence: int) -> SequenceSpan | None:
        """The call that made the node with this sequence number, or None when it was not seen."""
        position = bisect_right(self._firsts, sequence) - 1
        if position < 0 or sequence >= self._ends[position]:
            return None
        first, end, place = self._firsts[position], self._ends[position], self._places[position]
        forward = self._backward.get(first) if self._backward else None
        if forward is None:
            return SequenceSpan(first, end, place, False)
        return SequenceSpan(first, end, place, True, forward)

    def keep_last(self, count: int) -> None:
        """Forget all but so many calls, once there are twice as many."""
        if len(self._firsts) > 2 * count:
            self._forget(len(self._firsts) - count)

    def _forget(self, count: int) -> None:
        for memory in (self._firsts, self._ends, self._places):
            del memory[:count]
        self._backward = {
            first: forward for first, forward in self._backward.items() if first >= self._firsts[0]
        }
