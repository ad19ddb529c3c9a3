"""The gradients of one backward pass: hooks on live nodes fill in what flowed along each edge.

A node's post-hook sees both the gradients it sends (one an edge) and the sum it received; an
AccumulateGrad shows its sum to a pre-hook only.  The hooks return None, so nothing they see is
changed, and they are removed whatever happens.  Knows nothing of names or of the program.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
import torch
from torch.autograd.function import BackwardCFunction

from gradscope.autograd.isolation import functions_off
from gradscope.autograd.nodes import AROUND_HOOKED, Walked, is_leaf, outputs_of
from gradscope.graphing.gradient_table import NONE, NOT_REACHED, GradientTable, MeasuredTensor

Gradients = tuple[torch.Tensor | None, ...]

PASSES_ON = AROUND_HOOKED._backward_cls
"""The nodes around a module with backward hooks: what they receive they send.  Where the next node
receives something else, the module's hook put it there."""


class NodeEdges(msgspec.Struct, gc=False):
    """One node: the numbers of the edges that arrive at each of its outputs, and (slot, edge) of
    those that leave it.

    ``upstream`` is its row of the table that a :class:`EdgeGradients` fills, ``seeded`` are the
    outputs that the pass starts from, ``arrived`` is what was measured of the gradients that it
    received; ``passes_on``: it sends what it receives (:data:`PASSES_ON`).
    """

    number: int
    upstream: list[int]
    arriving: list[list[int]]
    leaving: list[tuple[int, int]]
    seeded: list[int]
    arrived: list[MeasuredTensor]
    passes_on: bool


class EdgeGradients:
    """Collects one pass over a walked graph.

    Args:
        walked: the graph.
        table: measures the gradients, and holds what was measured.

    After the pass ``edges[e]`` and ``upstream[n][k]`` are indices into the table.  ``latest`` is
    the node that was looked at last; after a pass that failed ``turn`` is the one whose turn it
    was.
    """

    def __init__(self, walked: Walked, table: GradientTable) -> None:
        self.table = table
        self.edges = [NOT_REACHED] * len(walked.edges)
        self.walked = walked
        self.latest: int | None = None
        self.turn: int | None = None
        self.hooked_edges: set[int] = set()
        """The edges on which the hook of a module put another gradient, or wrote into it."""
        self._sent: list[MeasuredTensor | None] = [None] * len(walked.edges)
        counts = [max(len(outputs_of(node)), 1) for node in walked.nodes]
        passing = (isinstance(node, PASSES_ON) for node in walked.nodes)
        self._places = [
            NodeEdges(number, [NOT_REACHED] * count, [[] for _ in range(count)], [], [], [], passes)
            for number, (count, passes) in enumerate(zip(counts, passing, strict=True))
        ]
        self.upstream = [place.upstream for place in self._places]
        for number, (source, slot, target, output) in enumerate(walked.edges):
            self._places[source].leaving.append((slot, number))
            self._places[target].arriving[output].append(number)

    def seed(self, node: int, output: int, gradient: torch.Tensor) -> int:
        """Note the gradient that a pass starts with; returns its index in the table."""
        self._places[node].seeded.append(output)
        return self.table.add(gradient)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Watch a backward pass that runs inside the block."""
        handles = []
        try:
            # Inside of `try`: Ctrl-C may come when only some of the hooks are there.
            for place, node in zip(self._places, self.walked.nodes, strict=True):
                leaf = is_leaf(node)
                if leaf or _needs_a_look_before(place, node):
                    handles.append(node.register_prehook(partial(self._before, place)))
                if not leaf:
                    handles.append(node.register_hook(partial(self._after, place)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def arrived(self, node: int, output: int, gradient: torch.Tensor | None) -> None:
        """Tell what a node received when the pass ended there and no hook could see it."""
        with functions_off():
            place = self._places[node]
            place.upstream[output] = self._received(place, output, gradient)

    def end(self) -> None:
        """The pass went through: what was sent to nodes that were not asked to run reached
        nobody."""
        for edge, (_, _, target, output) in enumerate(self.walked.edges):
            if self.upstream[target][output] == NOT_REACHED:
                self.edges[edge] = NOT_REACHED

    def fail(self, asked: Collection[object]) -> set[int]:
        """The pass failed: what was sent to a node has arrived there, also where the node, or a
        hook before it, then raised, or had not run yet; returns those nodes.  If nodes were
        ``asked`` for, only what leads to them runs."""
        nodes = self.walked.nodes
        runs = {at for at, node in enumerate(nodes) if not asked or node in asked}
        for source, _, target, _ in reversed(self.walked.edges):
            if target in runs:
                runs.add(source)
        ready = (at for at in self._ready() if at in runs)
        # Of the nodes that are ready, torch's engine takes the one with the highest number.
        self.turn = max(ready, key=lambda at: nodes[at]._sequence_nr(), default=None)
        waiting = set()
        for place in self._places:
            for output, arriving in enumerate(place.arriving):
                # Of several edges some may still have been waited for.
                if place.upstream[output] == NOT_REACHED and len(arriving) == 1:
                    place.upstream[output] = self.edges[arriving[0]]
                    waiting.add(place.number)
        return waiting

    def _ready(self) -> Iterator[int]:
        """The nodes that have received all they were to receive, and did not run."""
        for place in self._places:
            has_run = any(self.edges[edge] != NOT_REACHED for _, edge in place.leaving)
            # A leaf shows what it received just before it runs.
            has_run |= not place.leaving and place.upstream[0] != NOT_REACHED
            reached = [self.edges[edge] != NOT_REACHED for row in place.arriving for edge in row]
            if not has_run and all(reached) and (reached or place.seeded):
                yield place.number

    # What runs inside the program's backward must not fail because of us.

    def _before(self, place: NodeEdges, received: Gradients) -> None:
        if not place.leaving:
            self.latest = place.number
        try:
            with functions_off():
                self._note(place, received)
        except Exception as error:
            self.table.note_fault(error)

    def _after(self, place: NodeEdges, sent: Gradients, received: Gradients) -> None:
        self.latest = place.number
        try:
            with functions_off():
                # What a pre-hook has read is not read again: the function may have overwritten it
                # since.
                if not place.arrived:
                    self._note(place, received)
                self._note_sent(place, self._before_hooks(place, sent, received))
                self._ran(place, received)
        except Exception as error:
            self.table.note_fault(error)

    def _before_hooks(self, place: NodeEdges, sent: Gradients, received: Gradients) -> Gradients:
        """What a node sends without the hooks of a module; where a gradient is missing torch sends
        zeros."""
        if not place.passes_on:
            return sent
        for slot, edge in place.leaving:
            came = received[slot]
            if came is None:
                continue
            if came is not sent[slot] or not any(seen.is_still(came) for seen in place.arrived):
                self.hooked_edges.add(edge)
        each = zip(received, sent, strict=True)
        return tuple(left if came is None else came for came, left in each)

    def _ran(self, place: NodeEdges, received: Gradients) -> None:
        """A node has run, and what it sent is noted."""

    def _note_sent(self, place: NodeEdges, sent: Gradients) -> None:
        for slot, edge in place.leaving:
            gradient = sent[slot] if slot < len(sent) else None
            if gradient is None:
                self.edges[edge] = NONE
                continue
            for seen in place.arrived:
                # Passed through unchanged: it was measured when it arrived.  A module's hook may
                # have written into it since.
                if seen.is_still(gradient) or (place.passes_on and seen.tensor() is gradient):
                    break
            else:
                seen = self._measure(gradient)
            self._sent[edge], self.edges[edge] = seen, seen.entry
        place.arrived.clear()

    def _note(self, place: NodeEdges, received: Gradients) -> None:
        upstream = place.upstream
        for output, gradient in enumerate(received[: len(upstream)]):
            upstream[output] = self._received(place, output, gradient)

    def _received(self, place: NodeEdges, output: int, gradient: torch.Tensor | None) -> int:
        edges, reached = self.edges, place.arriving[output]
        # Entry 0 is NOT_REACHED: an edge of a node that was not asked to run has brought nothing.
        if len(reached) != 1 or not edges[reached[0]]:
            reached = [edge for edge in reached if edges[edge]]
        if gradient is None:
            return NONE if reached or output in place.seeded else NOT_REACHED
        # One gradient arrives as it was sent; otherwise it is a sum, or a hook of the program
        # put another one there.
        is_sum = len(reached) != 1 or output in place.seeded
        seen = None if is_sum else self._sent[reached[0]]
        if seen is None or not seen.is_still(gradient):
            seen = self._measure(gradient)
        place.arrived.append(seen)
        return seen.entry

    def _measure(self, gradient: torch.Tensor) -> MeasuredTensor:
        try:
            version = gradient._version
        except RuntimeError:  # an inference tensor has none
            version = -1
        return MeasuredTensor(weakref.ref(gradient), version, self.table.add_hidden(gradient))


def _needs_a_look_before(place: NodeEdges, node: object) -> bool:
    # Where one gradient arrives it is the one that was sent, known already; a sum exists only
    # on arrival, and a user's function may overwrite what it is given.
    is_sum = len(place.arriving) > 1 or len(place.arriving[0]) > 1
    return is_sum or bool(place.seeded) or isinstance(node, BackwardCFunction)
