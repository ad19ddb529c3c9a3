"""The gradients of one backward pass: hooks on live nodes fill in what flowed along each edge.

A node's post-hook sees both the gradients it sends (one an edge) and the sum it received; an
AccumulateGrad shows its sum to a pre-hook only.  The hooks return None, so nothing they see is
changed, and they are removed whatever happens.  Knows nothing of names or of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from gradscope.capture.meter import Meter
from gradscope.capture.walk import Walked

Gradients = tuple[torch.Tensor | None, ...]
Mark = tuple[int, int]
"""The address and version of a tensor's memory: the same pair, alive, is the same content."""

_NO_MARK: Mark = (0, -1)


class Flow:
    """Collects one pass over a walked graph.

    After the pass ``edges[e]`` and ``upstream[n][k]`` are indices into the meter's table; 0 means
    that backward never came there.
    """

    def __init__(self, walked: Walked, meter: Meter) -> None:
        self.meter = meter
        self.edges = [0] * len(walked.edges)
        self.upstream = [[0] * max(1, len(outputs_of(node))) for node in walked.nodes]
        self._walked = walked
        self._marks: list[Mark] = [_NO_MARK] * len(walked.edges)
        self._arrival_marks: list[list[Mark]] = [[_NO_MARK] * len(up) for up in self.upstream]
        self._leaving: list[list[tuple[int, int]]] = [[] for _ in walked.nodes]
        self._arriving: list[list[tuple[int, int]]] = [[] for _ in walked.nodes]
        self._seeded: set[tuple[int, int]] = set()
        for number, (source, slot, target, output) in enumerate(walked.edges):
            self._leaving[source].append((slot, number))
            self._arriving[target].append((output, number))

    def seed(self, node: int, output: int, gradient: torch.Tensor) -> int:
        """Note the gradient that a pass starts with; returns its index in the table."""
        self._seeded.add((node, output))
        return self.meter.add(gradient)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Watch a backward pass that runs inside the block."""
        seeded = {node for node, _ in self._seeded}
        handles = []
        try:
            for number, node in enumerate(self._walked.nodes):
                # Where one gradient arrives it is the one that was sent, known already; a sum
                # exists only on arrival, and the node itself may overwrite it.
                if number in seeded or len(self._arriving[number]) > 1 or is_leaf(node):
                    handles.append(node.register_prehook(partial(self._before, number)))
                if not is_leaf(node):
                    handles.append(node.register_hook(partial(self._after, number)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def arrived(self, node: int, output: int, gradient: torch.Tensor | None) -> None:
        """Tell what a node received when the pass ended there and no hook could see it."""
        self.upstream[node][output] = self._received(node, output, gradient)

    def _before(self, number: int, received: Gradients) -> None:
        upstream, marks = self.upstream[number], self._arrival_marks[number]
        for output, gradient in enumerate(received[: len(upstream)]):
            upstream[output] = self._received(number, output, gradient)
            marks[output] = _mark(gradient)

    def _after(self, number: int, sent: Gradients, received: Gradients) -> None:
        upstream, marks = self.upstream[number], self._arrival_marks[number]
        for output, gradient in enumerate(received[: len(upstream)]):
            if upstream[output] == 0:
                upstream[output] = self._received(number, output, gradient)
                marks[output] = self._mark_of_arrival(number, output, gradient)
        for slot, edge in self._leaving[number]:
            gradient = sent[slot] if slot < len(sent) else None
            mark = self._marks[edge] = _mark(gradient)
            # Passed through unchanged: the same memory at the same version was measured already.
            known = mark != _NO_MARK and mark in marks and _same_kind(gradient, received)
            self.edges[edge] = upstream[marks.index(mark)] if known else self.meter.add(gradient)

    def _received(self, number: int, output: int, gradient: torch.Tensor | None) -> int:
        reached = self._reached(number, output)
        seeded = (number, output) in self._seeded
        if gradient is None:
            return 1 if reached or seeded else 0
        # The tensor that was sent is alive until now, so the same address means the same tensor; a
        # different one was put there by a hook of the program.
        if (
            len(reached) == 1
            and not seeded
            and self._marks[reached[0]][0] == _mark(gradient)[0] != 0
        ):
            return self.edges[reached[0]]
        return self.meter.add(gradient)

    def _mark_of_arrival(self, number: int, output: int, gradient: torch.Tensor | None) -> Mark:
        reached = self._reached(number, output)
        return self._marks[reached[0]] if len(reached) == 1 else _mark(gradient)

    def _reached(self, number: int, output: int) -> list[int]:
        return [edge for to, edge in self._arriving[number] if to == output and self.edges[edge]]


def is_leaf(node: object) -> bool:
    """Whether a live node is an AccumulateGrad."""
    return hasattr(node, "variable")


def outputs_of(node: object) -> Sequence[object]:
    """Torch's metadata of the forward tensors whose gradients a node receives."""
    return getattr(node, "_input_metadata", ())


def _mark(gradient: torch.Tensor | None) -> Mark:
    if gradient is None or gradient.layout is not torch.strided or gradient.is_nested:
        return _NO_MARK
    return gradient.data_ptr(), gradient._version


def _same_kind(gradient: torch.Tensor | None, received: Gradients) -> bool:
    # A view at the same address (a slice of the first rows) is another gradient.
    return any(candidate is gradient for candidate in received)
