"""The gradients of one backward pass: hooks on live nodes fill in what flowed along each edge.

A node's post-hook sees both the gradients it sends (one an edge) and the sum it received; an
AccumulateGrad shows its sum to a pre-hook only.  The hooks return None, so nothing they see is
changed, and they are removed whatever happens.  Knows nothing of names or of the program.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
import torch
from torch.autograd.function import BackwardCFunction

from gradscope.capture.meter import NONE, NOT_REACHED, Meter
from gradscope.capture.nodes import is_leaf, outputs_of
from gradscope.capture.walk import Walked
from gradscope.garbage import collector_paused

Gradients = tuple[torch.Tensor | None, ...]


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A gradient tensor that was measured: weakly, at which version, and its entry in the table."""

    tensor: weakref.ref[torch.Tensor]
    version: int
    entry: int

    def is_still(self, gradient: torch.Tensor) -> bool:
        """Whether this is that very tensor, unchanged since."""
        return self.tensor() is gradient and self.version == _version(gradient)


class Flow:
    """Collects one pass over a walked graph.

    After the pass ``edges[e]`` and ``upstream[n][k]`` are indices into the meter's table.
    """

    @collector_paused()
    def __init__(self, walked: Walked, meter: Meter) -> None:
        self.meter = meter
        self.edges = [NOT_REACHED] * len(walked.edges)
        self.upstream = [[NOT_REACHED] * max(1, len(outputs_of(node))) for node in walked.nodes]
        self._walked = walked
        self._sent: list[Seen | None] = [None] * len(walked.edges)
        self._arrived: dict[int, list[Seen]] = {}
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
        handles = []
        try:
            with collector_paused():
                for number, node in enumerate(self._walked.nodes):
                    if self._needs_a_look_before(number, node):
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

    def end(self) -> None:
        """The pass went through: what was sent to nodes that were not asked to run reached
        nobody."""
        for edge, (_, _, target, output) in enumerate(self._walked.edges):
            if self.upstream[target][output] == NOT_REACHED:
                self.edges[edge] = NOT_REACHED

    def _needs_a_look_before(self, number: int, node: object) -> bool:
        # Where one gradient arrives it is the one that was sent, known already; a sum exists only
        # on arrival, and a user's function may overwrite what it is given.
        seeded = any(number == start for start, _ in self._seeded)
        is_sum = len(self._arriving[number]) > 1
        return seeded or is_sum or is_leaf(node) or isinstance(node, BackwardCFunction)

    def _before(self, number: int, received: Gradients) -> None:
        upstream = self.upstream[number]
        for output, gradient in enumerate(received[: len(upstream)]):
            upstream[output] = self._received(number, output, gradient)

    def _after(self, number: int, sent: Gradients, received: Gradients) -> None:
        upstream = self.upstream[number]
        for output, gradient in enumerate(received[: len(upstream)]):
            if upstream[output] == NOT_REACHED:
                upstream[output] = self._received(number, output, gradient)
        arrived = self._arrived.pop(number, ())
        for slot, edge in self._leaving[number]:
            gradient = sent[slot] if slot < len(sent) else None
            if gradient is None:
                self.edges[edge] = NONE
                continue
            # Passed through unchanged: it was measured when it arrived.
            seen = _find(arrived, gradient) or self._measure(gradient)
            self._sent[edge], self.edges[edge] = seen, seen.entry

    def _received(self, number: int, output: int, gradient: torch.Tensor | None) -> int:
        reached = [edge for to, edge in self._arriving[number] if to == output and self.edges[edge]]
        seeded = (number, output) in self._seeded
        if gradient is None:
            return NONE if reached or seeded else NOT_REACHED
        sent = self._sent[reached[0]] if len(reached) == 1 and not seeded else None
        # One gradient arrives as it was sent; otherwise it is a sum, or a hook of the program
        # put another one there.
        seen = sent if sent is not None and sent.is_still(gradient) else self._measure(gradient)
        self._arrived.setdefault(number, []).append(seen)
        return seen.entry

    def _measure(self, gradient: torch.Tensor) -> Seen:
        return Seen(weakref.ref(gradient), _version(gradient), self.meter.add(gradient))


def _find(seen: Iterable[Seen], gradient: torch.Tensor) -> Seen | None:
    for one in seen:
        if one.is_still(gradient):
            return one
    return None


def _version(gradient: torch.Tensor) -> int:
    try:
        return gradient._version
    except RuntimeError:  # an inference tensor has none
        return -1
