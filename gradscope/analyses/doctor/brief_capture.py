"""One backward call of the program, looked at briefly.

The graph is walked and the gradients of its leaves are read when the call has been made.  On the
way only those operations are looked at that can make NaN or infinity of ordinary numbers, and what
they had saved is noted when they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.births import KnownBirth, birthplace
from gradscope.analyses.doctor.full_capture import MAX_SOURCES, DoctorGradientTable, FullCapture
from gradscope.analyses.doctor.saved_values import summaries
from gradscope.analyses.doctor.values import NonFiniteValues
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.elements import is_ordinary
from gradscope.autograd.nodes import LEAF
from gradscope.autograd.nonfinite import count, read_counts
from gradscope.autograd.norms import PART, are_exact, is_exact
from gradscope.autograd.summary import name_of
from gradscope.autograd.walk import CUT, make_release_safe, nearest, walk
from gradscope.graphing.edge_gradients import Gradients
from gradscope.graphing.gradient_table import NONE, NOT_REACHED
from gradscope.graphing.watched_call import WatchedCall
from gradscope.model.observations import Saved
from gradscope.recording.recorder import Recorder

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


Entries = list[int]
"""Indices into a table of gradients."""


class BriefCapture(WatchedCall):
    """A backward call that is about to be made.

    Args:
        call, recorder, number: as for :class:`WatchedCall`.
        values: what was seen of the forward pass.
    """

    def __init__(
        self, call: BackwardCall, recorder: Recorder, number: int, values: NonFiniteValues
    ) -> None:
        super().__init__(call, recorder, number)
        self._values = values
        # In float16 any operation may overflow.
        infinite = {sequence for sequence, _ in values.counts}
        roots = [node for node, _ in self.ends]
        self._nodes = nearest(roots)
        # Only a graph of so many nodes can be so deep, and a full walk costs three times this look.
        if len(self._nodes) >= CUT:
            make_release_safe(walk(roots))
        self._leaves: list[tuple[Any, torch.Tensor]] = []
        self._doubtful: list[LiveNode] = []
        for node in self._nodes:
            # Most are known by the name of their type, and asked nothing else.
            kind = type(node).__name__
            if kind == LEAF:
                leaf = node.variable  # type: ignore[attr-defined]
                if leaf is not None:
                    self._leaves.append((node, leaf))
            elif (
                values.half
                or not (kind in _BOUNDED or is_bounded(node))
                or (infinite and node._sequence_nr() in infinite)
            ):
                self._doubtful.append(node)
        self._table = DoctorGradientTable()
        self._passed: dict[LiveNode, tuple[Entries, Entries]] = {}
        self._added = {node for node, leaf in self._leaves if leaf.grad is not None}
        self._arrived: dict[LiveNode, int] = {}
        self._norms: dict[LiveNode, float] = {}
        self._saved: list[tuple[LiveNode, Saved]] = []
        self._births: list[tuple[LiveNode, KnownBirth]] = []

    @property
    def nodes(self) -> list[LiveNode]:
        """The nodes of the graph, nearest to the roots first."""
        return self._nodes

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The leaves of the graph that still live."""
        return [leaf for _, leaf in self._leaves]

    def run(self) -> None:
        """Make the call."""
        handles = [node.register_hook(partial(self._sent, node)) for node in self._doubtful]
        # What is added to a gradient that is there already can only be read on its way.
        handles += [node.register_prehook(partial(self._received, node)) for node in self._added]
        try:
            self.make(self.nodes)
        finally:
            for handle in handles:
                handle.remove()

    # ------------------------------------------------------------------ on the way

    def _received(self, node: LiveNode, received: Gradients) -> None:
        with self.recorder.aside():
            self._arrived[node] = self._table.add(received[0])

    def _sent(self, node: LiveNode, sent: Gradients, received: Gradients) -> None:
        with self.recorder.aside():
            self._look(node, sent, received)

    def _look(self, node: LiveNode, sent: Gradients, received: Gradients) -> None:
        if all(gradient is None or _is_finite(gradient) for gradient in sent):
            return
        leaving = [self._table.add(gradient) for gradient in sent]
        arriving = [self._table.add(gradient) for gradient in received]
        self._passed[node] = leaving, arriving
        bad = self._table.bad
        # Where something bad came in already, another node has made it.
        if bad.isdisjoint(leaving) or not bad.isdisjoint(arriving):
            return
        if len({node for node, _ in self._saved}) < MAX_SOURCES:
            self._saved += [(node, saved) for saved in summaries(0, node, received)]
            self._values.note_saved(node)
            birth = birthplace(node, received, self.recorder.places)
            if birth is not None:
                self._births.append((node, birth))

    # ------------------------------------------------------------------ what came of it

    def measured(self) -> None:
        """Read the gradients that the call left, all of a kind at once."""
        kinds: dict[tuple[torch.dtype, torch.device], list[tuple[LiveNode, torch.Tensor]]] = {}
        for node, gradient in self._left():
            if _is_read_together(gradient):
                kinds.setdefault((gradient.dtype, gradient.device), []).append((node, gradient))
            else:
                self._arrived[node] = self._table.add(gradient)
        for pairs in kinds.values():
            self._measure(pairs)
        self._table.find_bad()

    def _measure(self, pairs: list[tuple[LiveNode, torch.Tensor]]) -> None:
        # After create_graph a `.grad` has a history, and its norm would have one, too.
        with torch.no_grad():
            norms = torch.stack(torch._foreach_norm([gradient for _, gradient in pairs])).tolist()
        are_sure = are_exact(norms)
        for (node, gradient), norm in zip(pairs, norms, strict=True):
            if are_sure or is_exact(norm, gradient):
                self._norms[node] = norm
            else:
                self._arrived[node] = self._table.add(gradient)

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

    @property
    def is_finite(self) -> bool:
        """Whether every gradient that was read was finite."""
        return not self._table.bad

    def leaf_norms(self) -> Iterator[tuple[torch.Tensor, float]]:
        """The 2-norm of what arrived at each leaf, where something did."""
        table, norms = self._table.finish(), self._norms
        for node, leaf in self._leaves:
            norm: Any = norms.get(node)
            if norm is None:
                norm = table[self._arrived.get(node, NOT_REACHED)].norm
            if norm is not None:
                yield leaf, float(norm)

    def reached(self) -> list[torch.Tensor]:
        """The leaves that the call brought a gradient."""
        norms = self._norms
        return [leaf for node, leaf in self._leaves if node in norms or self._reaches(node)]

    def in_full(self) -> FullCapture:
        """The same call as a full look would tell it; gradients that nobody read are unread."""
        watch = FullCapture(self.call, self.recorder, self.number, self._table)
        watch.failure, watch.result = self.failure, self.result
        flow, walked = watch.flow, watch.walked
        unread = self._table.unread()
        # Where the call failed, some may have been sent to a leaf and never arrived.
        unreached = {
            position
            for position in watch.leaf_positions
            if self.failure is None and not self._reaches(walked.nodes[position])
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
        for position in watch.leaf_positions:
            flow.upstream[position] = [self._entry(walked.nodes[position])]
        watch.note_seeds()
        before = (walked.nodes[position] in self._added for position in watch.leaf_positions)
        watch.before = [unread if had else None for had in before]
        watch.note_grads()
        flow.births = [(walked.index[node], birth) for node, birth in self._births]
        flow.saved = [
            msgspec.structs.replace(saved, node=walked.index[node]) for node, saved in self._saved
        ]
        return watch

    def _reaches(self, node: LiveNode) -> bool:
        return node in self._norms or self._arrived.get(node, NONE) not in (NONE, NOT_REACHED)

    def _entry(self, node: Any) -> int:
        """The entry of what arrived at a leaf."""
        if node in self._norms:
            return self._table.finite(self._norms[node], name_of(node.variable.dtype))
        return self._arrived.get(node, NOT_REACHED)


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
