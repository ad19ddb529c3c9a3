"""A backward call that is made while somebody looks, the program's or one of ours through its
graph: the one engine for that.

A :class:`MeasuredCall` measures every gradient on its way. Knows nothing of why it is looked at.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cached_property
from types import FrameType
from typing import Any

import msgspec
import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.calls import BackwardCall, edge_of, own_grad
from gradscope.autograd.isolation import grads_preserved, hidden, own_pass
from gradscope.autograd.nodes import Walked, is_leaf, is_nested, outputs_of, torch_name
from gradscope.escaping import message
from gradscope.graphing.assemble import backward_pass
from gradscope.graphing.edge_gradients import EdgeGradients
from gradscope.graphing.gradient_table import NONE
from gradscope.model.report import Accumulation, BackwardPass, Graph
from gradscope.recording.recorder import Recorder
from gradscope.recording.wrappers import copies, local, shards


class MeasuredCall:
    """A call that is about to be made, of which every gradient is measured, and then how it ended.

    Args:
        call: the call.
        recorder: what is known of how the graph was made.
        number: counts the program's calls from 1.
        gradients: collects what flows through its walked graph; else :meth:`follow` is given it.
    """

    def __init__(
        self,
        call: BackwardCall,
        recorder: Recorder,
        number: int,
        gradients: EdgeGradients | None = None,
    ) -> None:
        self.call = call
        self.number = number
        self.failure: Exception | None = None
        self.result: Any = None
        self.recorder = recorder
        self.ends = [edge_of(root) for root in call.roots]
        """The node and output number of every root."""
        self.before: list[int | None] = []
        self.after: list[int | None] = []
        # Nodes that a call which failed had sent a gradient, and that did not run.
        self.unfinished: set[int] = set()
        self._seeds: list[int] = []
        self._shards: dict[int, torch.Tensor] = {}
        if gradients is not None:
            self.follow(gradients)

    @cached_property
    def place(self) -> int:
        """The number of the place that makes the call."""
        return self.recorder.places.number_of_call(self.call.frame)

    def follow(self, gradients: EdgeGradients) -> None:
        """Learn what collects the gradients."""
        self.flow = gradients
        self.table = gradients.table
        self.walked = gradients.walked
        self.leaf_positions = [n for n, node in enumerate(self.walked.nodes) if is_leaf(node)]

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The leaves of the graph that still live."""
        return [leaf for leaf, _ in self.leaf_entries()]

    def leaf_entries(self) -> list[tuple[torch.Tensor, int]]:
        """These, each with the entry of what arrived there."""
        return [
            (leaf, self.flow.upstream[position][0])
            for position, leaf in zip(self.leaf_positions, self.variables(), strict=True)
            if leaf is not None
        ]

    def prepare(self) -> None:
        """Measure what the call starts from; not kept, because it may add to these very tensors."""
        self.note_seeds()
        self._shards = shards(self.recorder.modules.living_roots())
        self.before = self._grads()

    def note_seeds(self) -> None:
        """Measure the gradients that the call starts with."""
        given = map(initial, self.call.roots, self.call.gradients)
        index = self.walked.index
        self._seeds = [
            NONE if gradient is None else self.flow.seed(index[node], output, gradient)
            for (node, output), gradient in zip(self.ends, given, strict=True)
        ]

    def run(self) -> None:
        with self.flow.hooked():
            self.make(self.walked.nodes)
        with hidden():
            if self.failure is not None:
                self.unfinished = self.flow.fail({edge_of(one)[0] for one in self.call.inputs})
                return
            if not self.call.accumulates:
                self._note_results()
            self.flow.end()

    def make(self, nodes: Sequence[LiveNode]) -> None:
        """Make the call, whose graph has these nodes, and look at nothing."""
        try:
            self.result = self.recorder.let_run(self.call, nodes=nodes)
        except Exception as error:  # the program's own: it is raised again when we have looked
            self.failure = error

    def conclude(self) -> Any:
        """End the call as it ended: return its result or raise its exception."""
        if self.failure is None:
            return self.result
        try:
            raise self.failure
        finally:
            # Its traceback knows this call: a cycle that kept the graph until the collector ran.
            self.failure = None

    # ------------------------------------------------------------------ what came of it

    def note_grads(self) -> None:
        """Measure the gradients that the leaves have now."""
        self.after = self._grads()

    def passed(self, graph: Graph, origin: int | None) -> BackwardPass:
        """The gradients as plain data, for this graph, of a call at this origin."""
        error = self.failure
        words = "" if error is None else f"{type(error).__name__}: {message(error)}"
        flowed = backward_pass(self.flow, graph, self._seeds, words)
        accumulations = flowed.accumulations
        if self.call.accumulates:
            accumulations = tuple(
                Accumulation(arrived.new, before, after, copies(self._kept(leaf)))
                for arrived, before, after, leaf in zip(
                    accumulations, self.before, self.after, self.variables(), strict=True
                )
            )
        return msgspec.structs.replace(
            flowed,
            number=self.number,
            origin=origin,
            accumulations=accumulations,
        )

    def variables(self) -> list[Any]:
        """The leaves of the graph, in its order; None for those that are gone."""
        return [self.walked.nodes[position].variable for position in self.leaf_positions]  # type: ignore[attr-defined]

    def _grads(self) -> list[int | None]:
        # `grad` leaves every `.grad` as it is.
        if not self.call.accumulates:
            return [None] * len(self.leaf_positions)
        kept = map(self._kept, self.variables())
        grads = (None if leaf is None else local(leaf.grad) for leaf in kept)
        return [None if grad is None else self.table.add(grad) for grad in grads]

    def _kept(self, leaf: torch.Tensor | None) -> torch.Tensor | None:
        """What stays on this rank of a leaf."""
        return self._shards.get(id(leaf), leaf)

    def _note_results(self) -> None:
        for tensor, gradient in zip(self.call.inputs, self.result, strict=False):
            node, output = edge_of(tensor)
            position = self.walked.index.get(node)
            # Of a vectorised call they have a dimension that their tensors have not.
            if position is not None and not self.call.batched:
                self.flow.arrived(position, output, gradient)


def fits(root: Any, gradient: torch.Tensor | None) -> bool:
    """Whether torch starts from this root with this gradient: it wants one of the same shape."""
    described = _described(root)
    if gradient is None or is_nested(described):
        return True
    return tuple(gradient.shape) == tuple(described.shape)


def initial(root: Any, seed: torch.Tensor | None) -> torch.Tensor | None:
    """The gradient that a pass starts with: as given, or the 1 that torch fills in."""
    if seed is not None:
        return seed
    described = _described(root)
    # Torch fills in a 1 for one element only; for others the call is about to fail.
    if is_nested(described) or math.prod(described.shape) != 1:
        return None
    return torch.ones(tuple(described.shape), dtype=described.dtype, device=described.device)


def _described(root: Any) -> Any:
    """What has the shape, dtype and device of a root, which may be a gradient edge."""
    node, output = edge_of(root)
    return outputs_of(node)[output] if outputs_of(node) else root


def own_call(
    roots: Sequence[Any],
    gradients: Sequence[torch.Tensor | None],
    walked: Walked,
    frame: FrameType | None = None,
) -> BackwardCall:
    """The call that sends these gradients through a walked graph, and returns those of its leaves.

    Buffers are kept, ``.grad`` stays as it is, and nothing is accumulated.  Hooks that the program
    put on tensors do run, as in any backward.  ``frame`` is who asks for it, if that matters.
    """
    inputs: list[Any] = [node.variable for node in walked.nodes if is_leaf(node)]  # type: ignore[attr-defined]

    def make() -> tuple[torch.Tensor | None, ...]:
        # Although no `.grad` is asked for: a reentrant checkpoint makes a backward call of its own,
        # and what was retained is added to by any pass.
        with grads_preserved(), own_pass():
            return _sent(roots, gradients, inputs, walked)

    return BackwardCall(list(roots), list(gradients), inputs, frame or sys._getframe(), make)


def _sent(
    roots: Sequence[Any],
    gradients: Sequence[torch.Tensor | None],
    inputs: list[Any],
    walked: Walked,
) -> tuple[torch.Tensor | None, ...]:
    # Reentrant checkpointing calls backward inside backward, which torch allows only where
    # gradients are accumulated.
    reentrant = any(torch_name(node) == "CheckpointFunctionBackward" for node in walked.nodes)
    if reentrant or not inputs:
        torch.autograd.backward(roots, gradients, retain_graph=True)
        return ()
    # Asking for all leaves as inputs leaves every ``.grad`` alone.
    return own_grad(roots, inputs, gradients)
