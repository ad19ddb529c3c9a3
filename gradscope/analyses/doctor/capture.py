"""One backward call of the program, and what is seen of it: the one way in which the doctor looks.

In full the graph is walked before the call, and every gradient on its way is read.  Briefly the
gradients of the leaves are read when the call has been made; on the way only those operations are
looked at that can make NaN or infinity of ordinary numbers.  What nobody read is *unread*.  Either
way it is noted what a node had saved when it made a gradient that is not finite.  Knows nothing of
what other parts have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial
from typing import Any

import msgspec
import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.saved_values import summaries
from gradscope.analyses.doctor.values import NonFiniteValues
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.elements import is_ordinary, readable
from gradscope.autograd.nodes import CUT, LEAF, Walked, make_release_safe, nearest, walk
from gradscope.autograd.nonfinite import count, read_counts
from gradscope.autograd.numbers import PART, are_exact, is_exact
from gradscope.autograd.summary import name_of
from gradscope.graphing.edge_gradients import EdgeGradients, Gradients, NodeEdges
from gradscope.graphing.gradient_table import MAX_VALUES, NONE, NOT_REACHED, GradientTable
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.model.observations import Activity, Change, Saved
from gradscope.model.report import GradientInfo
from gradscope.model.studies import CallCheck
from gradscope.recording.recorder import Recorder

MAX_SOURCES = 8
"""Nodes whose saved tensors are described, because they made a gradient that is not finite."""

_MOVING = """Alias AsStrided Cat Chunk Clone ConstantPadNd Copy Diagonal Embedding Expand Flip
    Gather Index IndexSelect MaskedFill MaskedSelect Narrow Permute Repeat ReshapeAlias Roll Select
    Slice Split SplitWithSizes Squeeze Stack T ToCopy Transpose Tril Triu Unbind Unfold UnsafeSplit
    UnsafeView Unsqueeze View Where"""
_ADDING = """Abs Add Addbmm Addmm Addmv Addr Baddbmm Bmm Convolution Dot Exp Log Mean Mm Mul Mv Neg
    Rsub Sub Sum"""
_ACTIVATING = """Dropout Elu Gelu Hardsigmoid Hardswish Hardtanh LeakyRelu LogSoftmax MseLoss
    NativeDropout NllLoss NllLoss2D Relu Sigmoid Silu Softmax Tanh Threshold"""
_NORMALISING = "NativeBatchNorm NativeGroupNorm NativeLayerNorm"
_POOLING = "AdaptiveAvgPool2D AvgPool2D MaxPool2DWithIndices"


def _types(ops: str) -> frozenset[str]:
    """The names of the types of such nodes; torch numbers the variants of an operation."""
    return frozenset(f"{op}Backward{number}" for op in ops.split() for number in range(8))


# Bounded is an operation whose derivative is bounded where its result is finite, so that backward
# goes wrong only where it receives or has saved NaN or infinity, or where numbers grow too large
# for their dtype.  A division by 0 or a logarithm of 0 shows in its result already.  Roots, powers,
# norms, spreads, inverse functions, decompositions, custom Functions and whatever is not listed
# here may do it unseen.
_BOUNDED = _types(f"{_MOVING} {_ADDING} {_ACTIVATING} {_NORMALISING} {_POOLING}")
_DIVISIONS = _types("Div")


def is_bounded(node: LiveNode) -> bool:
    """Whether a node is of an operation that is bounded."""
    kind = type(node).__name__
    # Division by something that gets a gradient itself has its square in the derivative.  In
    # TorchScript a number is no operand.
    divisors = node.next_functions[1:] if kind in _DIVISIONS else ()
    return kind in _BOUNDED or (kind in _DIVISIONS and all(one is None for one, _ in divisors))


class _Sources:
    """Nodes of one call that made a gradient which is not finite of those that were, each with what
    it had saved then.  Knows nothing of the call, which would be kept alive by a cycle."""

    def __init__(self, values: NonFiniteValues) -> None:
        self.known: list[tuple[LiveNode, list[Saved]]] = []
        self._values = values

    def note(self, node: LiveNode, received: Gradients) -> None:
        """Finite gradients came to a node, others leave it, and it still has what it saved."""
        if len(self.known) < MAX_SOURCES:
            found = list(summaries(node, received))
            self._values.note_saved(node)
            self.known.append((node, found))


class Capture(MeasuredCall):
    """A backward call that is about to be made.

    Before it is made, ``changed`` are tensors that were changed since a node saved them,
    ``activities`` and ``functions`` what was seen of activations and of custom Functions; only in
    full.

    Args:
        call, recorder, number: as for :class:`MeasuredCall`.
        values: what was seen of the forward pass.
        is_full: every gradient is read.
        keep: the values of gradients with at most this many elements are kept.
    """

    flow: DoctorEdgeGradients

    def __init__(
        self,
        call: BackwardCall,
        recorder: Recorder,
        number: int,
        values: NonFiniteValues,
        is_full: bool = True,
        keep: int = 0,
    ) -> None:
        super().__init__(call, recorder, number)
        self.is_full = is_full
        self.changed: list[Change] = []
        self.activities: list[Activity] = []
        self.functions: list[CallCheck] = []
        # The rules judge by norms: values are kept only for somebody who looks.
        self.table = GradientTable(keep, MAX_VALUES if keep else 0)
        self._keep = keep
        self._values = values
        self._sources = _Sources(values)
        self._nodes: list[LiveNode] = []
        self._leaves: list[tuple[Any, torch.Tensor]] = []
        self._doubtful: list[LiveNode] = []
        self._passed: dict[LiveNode, tuple[list[int], list[int]]] = {}
        self._arrived: dict[LiveNode, int] = {}
        self._added: set[LiveNode] = set()
        self._has_edges = False
        if is_full:
            self._follow()
            self.prepare()
        else:
            self._choose()

    def _follow(self) -> None:
        """Walk the graph, whose every edge has an entry from now on."""
        walked = walk(node for node, _ in self.ends)
        # The doctor lets the program run on, and drop its graph whenever it likes.
        make_release_safe(walked)
        self.follow(DoctorEdgeGradients(walked, self.table, self._sources.note))
        self._nodes, self._has_edges = walked.nodes, True

    def _choose(self) -> None:
        """Find the leaves, and the nodes that are to be looked at while the call is made."""
        values, roots = self._values, [node for node, _ in self.ends]
        infinite = {sequence for sequence, _ in values.counts}
        self._nodes = nearest(roots)
        # Only a graph of so many nodes can be so deep, and a full walk costs three times this look.
        if len(self._nodes) >= CUT:
            make_release_safe(walk(roots))
        for node in self._nodes:
            # Most are known by the name of their type, and asked nothing else.
            kind = type(node).__name__
            if kind == LEAF:
                leaf = node.variable  # type: ignore[attr-defined]
                if leaf is not None:
                    self._leaves.append((node, leaf))
            elif (
                # In float16 any operation may overflow.
                values.half
                or not (kind in _BOUNDED or is_bounded(node))
                or (infinite and node._sequence_nr() in infinite)
            ):
                self._doubtful.append(node)
        self._added = {node for node, leaf in self._leaves if leaf.grad is not None}

    @property
    def nodes(self) -> list[LiveNode]:
        """The nodes of the graph; of a brief look nearest to the roots first."""
        return self._nodes

    @cached_property
    def sequences(self) -> dict[int, int]:
        """The positions of the nodes, by their sequence numbers."""
        return self.walked.positions()

    def run(self) -> None:
        """Make the call."""
        if self.is_full:
            super().run()
            return
        handles = [node.register_hook(partial(self._sent, node)) for node in self._doubtful]
        # What is added to a gradient that is there already can only be read on its way.
        handles += [node.register_prehook(partial(self._received, node)) for node in self._added]
        try:
            self.make(self._nodes)
        finally:
            for handle in handles:
                handle.remove()

    # ------------------------------------------------------------------ on the way

    def _received(self, node: LiveNode, received: Gradients) -> None:
        with self.recorder.aside():
            self._arrived[node] = self.table.add(received[0])

    def _sent(self, node: LiveNode, sent: Gradients, received: Gradients) -> None:
        with self.recorder.aside():
            if all(gradient is None or _is_finite(gradient) for gradient in sent):
                return
            leaving, arriving = list(map(self.table.add, sent)), list(map(self.table.add, received))
            self._passed[node] = leaving, arriving
            # Where something bad came in already, another node has made it.
            if self.table.bad.isdisjoint(arriving) and not self.table.bad.isdisjoint(leaving):
                self._sources.note(node, received)

    # ------------------------------------------------------------------ what came of it

    def measured(self) -> None:
        """Measure what the call left, and wait for what waits on other devices."""
        if self.is_full:
            self.note_grads()
        else:
            self._read_leaves()
        self.table.read_back()

    def _read_leaves(self) -> None:
        """Read the gradients that the call left, all of a kind at once."""
        kinds: dict[tuple[torch.dtype, torch.device], list[tuple[LiveNode, torch.Tensor]]] = {}
        for node, gradient in self._left():
            # One whose values a full look keeps is read by these, and so by itself here.
            if _is_read_together(gradient) and gradient.numel() > self._keep:
                kinds.setdefault((gradient.dtype, gradient.device), []).append((node, gradient))
            else:
                self._arrived[node] = self.table.add(gradient)
        for (dtype, _), pairs in kinds.items():
            norms = torch.stack(torch._foreach_norm([one for _, one in pairs])).tolist()
            are_sure, name = are_exact(norms), name_of(dtype)
            for (node, gradient), norm in zip(pairs, norms, strict=True):
                is_sure = are_sure or is_exact(norm, gradient)
                self._arrived[node] = (
                    self.table.append(GradientInfo("finite", norm=norm, dtype=name))
                    if is_sure
                    else self.table.add(gradient)
                )

    def _left(self) -> list[tuple[LiveNode, torch.Tensor]]:
        """Each gradient that nobody has read yet, with the node where it arrived."""
        # What was there before the call is mixed with what it brought, and was read on its way.
        if self.call.accumulates:
            added = self._added
            return [
                (node, gradient)
                for node, leaf in self._leaves
                if (gradient := leaf.grad) is not None and node not in added
            ]
        results = () if self.failure is not None else self.result
        return [
            (edge_of(tensor)[0], gradient)
            for tensor, gradient in zip(self.call.inputs, results, strict=False)
            if gradient is not None
        ]

    def leaf_entries(self) -> list[tuple[torch.Tensor, int]]:
        """The leaves that still live, each with the entry of what arrived there."""
        if self.is_full:
            return super().leaf_entries()
        arrived = self._arrived
        return [(leaf, arrived.get(node, NOT_REACHED)) for node, leaf in self._leaves]

    def leaf_norms(self) -> list[tuple[torch.Tensor, float]]:
        """The leaves that something arrived at, each with the 2-norm of that."""
        table = self.table.finish()
        found = ((leaf, table[entry].norm) for leaf, entry in self.leaf_entries())
        return [(leaf, float(norm)) for leaf, norm in found if norm is not None]

    def reached(self) -> list[torch.Tensor]:
        """The leaves that the call brought a gradient."""
        return [leaf for leaf, entry in self.leaf_entries() if entry not in (NONE, NOT_REACHED)]

    def outside(self) -> list[torch.Tensor]:
        """Tensors that the call wants the gradient of, and that are not in its graph."""
        inside = set(self._nodes)
        return [
            tensor
            for tensor in self.call.inputs
            if isinstance(tensor, torch.Tensor) and edge_of(tensor)[0] not in inside
        ]

    @property
    def is_finite(self) -> bool:
        """Whether every gradient that was read was finite."""
        return not self.table.bad

    @property
    def is_troubled(self) -> bool:
        """Whether the call failed, or its gradients cannot be right."""
        is_wrong = any(one.verdict == "wrong" for one in self.functions)
        return self.failure is not None or not self.is_finite or bool(self.changed) or is_wrong

    def source(self) -> int | None:
        """The first node, in backward order, that made a gradient which is not finite of those that
        were; of a full look."""
        bad, flow = self.table.bad, self.flow
        for index, (node, _, _, _) in enumerate(self.walked.edges):
            if flow.edges[index] in bad and bad.isdisjoint(flow.upstream[node]):
                return node
        return None

    def saved(self) -> Iterator[Saved]:
        """What nodes had saved that made a gradient which is not finite."""
        for node, saved in self._sources.known:
            for one in saved:
                yield msgspec.structs.replace(one, node=self.walked.index[node])

    def complete(self) -> None:
        """Tell of a brief look what a full one does; gradients that nobody read are unread."""
        if self._has_edges:
            return
        self._follow()
        flow, walked, unread = self.flow, self.walked, self.table.append(GradientInfo("finite"))
        arrived = [
            self._arrived.get(walked.nodes[position], NOT_REACHED)
            for position in self.leaf_positions
        ]
        # Where the call failed, some may have been sent to a leaf and never arrived.
        unreached = {
            position
            for position, entry in zip(self.leaf_positions, arrived, strict=True)
            if self.failure is None and entry in (NONE, NOT_REACHED)
        }
        flow.edges = [unread] * len(flow.edges)
        flow.upstream = [[unread] * len(row) for row in flow.upstream]
        for number, (source, slot, target, _) in enumerate(walked.edges):
            leaving, _ = self._passed.get(walked.nodes[source], ((), ()))
            if slot < len(leaving):
                flow.edges[number] = leaving[slot]
            elif target in unreached:
                flow.edges[number] = NOT_REACHED
        for node, (_, arriving) in self._passed.items():
            row = flow.upstream[walked.index[node]]
            row[: len(arriving)] = arriving[: len(row)]
        for position, entry in zip(self.leaf_positions, arrived, strict=True):
            flow.upstream[position] = [entry]
        self.note_seeds()
        before = (walked.nodes[position] in self._added for position in self.leaf_positions)
        self.before = [unread if had else None for had in before]
        self.note_grads()


class DoctorEdgeGradients(EdgeGradients):
    """Also tells of nodes to which finite gradients came and that sent others, and of gradients in
    whose place a hook of the program has put others (``replaced``, where it ``has_hooks``)."""

    def __init__(
        self,
        walked: Walked,
        table: GradientTable,
        on_source: Callable[[LiveNode, Gradients], None],
    ) -> None:
        super().__init__(walked, table)
        self._bad = table.bad
        self._on_source = on_source
        self.replaced: set[int] = set()
        self.has_hooks = False
        self._kept: dict[int, torch.Tensor] = {}

    def _received(self, place: NodeEdges, output: int, gradient: torch.Tensor | None) -> int:
        if self.has_hooks and gradient is not None and len(place.arriving[output]) == 1:
            # Told by the numbers: what a hook has put in its place may have the same norm, or be a
            # copy.
            sent = self._kept.pop(place.arriving[output][0], None)
            if sent is not None and sent is not gradient and not _are_equal(sent, gradient):
                self.replaced.add(place.number)
        return super()._received(place, output, gradient)

    def _note_sent(self, place: NodeEdges, sent: Gradients) -> None:
        super()._note_sent(place, sent)
        # Until it has arrived: a leaf lets go of it before it takes it for its own.  Not where
        # others are added to it: torch adds in place where nobody else holds it.
        for slot, edge in place.leaving if self.has_hooks else ():
            gradient = sent[slot] if slot < len(sent) else None
            _, _, target, output = self.walked.edges[edge]
            reached = self._places[target]
            is_alone = len(reached.arriving[output]) == 1 and output not in reached.seeded
            if gradient is not None and is_alone:
                self._kept[edge] = gradient

    def end(self) -> None:
        """The pass went through, and nothing arrives any more."""
        super().end()
        self._kept.clear()

    def fail(self, asked: Collection[object]) -> set[int]:
        """The pass failed, and nothing arrives any more."""
        self._kept.clear()
        return super().fail(asked)

    def _ran(self, place: NodeEdges, received: Gradients) -> None:
        bad = self._bad
        if not bad or all(self.edges[edge] not in bad for _, edge in place.leaving):
            return
        if bad.isdisjoint(place.upstream):
            self._on_source(self.walked.nodes[place.number], received)


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two gradients can be read and hold the same numbers."""
    alike = one.shape == other.shape and one.dtype is other.dtype
    if not (alike and readable(one) and readable(other)):
        return False
    # NaN, which equals nothing, stays NaN.
    same = (one == other) | ((one != one) & (other != other))
    return torch.equal(one, other) or bool(same.all())


def _is_finite(gradient: torch.Tensor) -> bool:
    """Whether a gradient is known to be finite now, without waiting for a device."""
    # Most are ordinary, and their storage is left alone: see `has_memory`.
    counts = read_counts if is_ordinary(gradient) else count
    return gradient.is_cpu and counts(gradient) is None


def _is_read_together(gradient: torch.Tensor) -> bool:
    """Whether one reduction reads many such gradients at once, and none of them wrongly."""
    wide = gradient.dtype in (torch.float32, torch.float64)
    # On the CPU a large one is read by parts: beyond that, torch's own norm has not four digits.
    is_large = gradient.is_cpu and gradient.numel() > PART
    return wide and not is_large and is_ordinary(gradient)
