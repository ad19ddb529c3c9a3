"""One backward call of the program, looked at in full; its graph is described if somebody asks.

Walks the graph before the call, and notes what a node had saved when it made a gradient that is not
finite.  Knows nothing of what other parts have seen.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.births import KnownBirth, birthplace
from gradscope.analyses.doctor.saved_values import summaries
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import TensorTable
from gradscope.autograd.walk import Walked, make_release_safe, walk
from gradscope.graphing.assemble import Assembler
from gradscope.graphing.edge_gradients import EdgeGradients, Gradients, NodeEdges
from gradscope.graphing.gradient_table import MAX_VALUES, GradientTable
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.model.observations import Saved
from gradscope.model.report import GradientInfo, Graph
from gradscope.recording.names import Scopes
from gradscope.recording.places import Places
from gradscope.recording.recorder import Recorder

MAX_SOURCES = 8
"""Nodes whose saved tensors are described, because they made a gradient that is not finite."""


class DoctorEdgeGradients(EdgeGradients):
    """Also looks at what a node had saved when finite gradients came in and others went out.

    ``has_hooks``: the program has hung hooks on tensors, so that gradients may be replaced.
    ``on_source`` is told of each such node while it still has what it saved.  ``births`` are the
    lines inside of custom Functions that made the first such number, by node.
    """

    def __init__(self, walked: Walked, table: DoctorGradientTable, places: Places) -> None:
        super().__init__(walked, table)
        self._lines = places
        self._bad = table.bad
        self.saved: list[Saved] = []
        self.births: list[tuple[int, KnownBirth]] = []
        self.replaced: set[int] = set()
        self.has_hooks = False
        self._kept: dict[int, torch.Tensor] = {}
        self.on_source: Callable[[LiveNode], None] = _nothing
        self._sources = 0

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

    def fail(self) -> set[int]:
        """The pass failed, and nothing arrives any more."""
        self._kept.clear()
        return super().fail()

    def _ran(self, place: NodeEdges, received: Gradients) -> None:
        if self._sources < MAX_SOURCES and self._is_source(place):
            self._sources += 1
            node = self.walked.nodes[place.number]
            self.saved.extend(summaries(place.number, node, received))
            self.on_source(node)
            birth = birthplace(node, received, self._lines)
            if birth is not None:
                self.births.append((place.number, birth))

    def _is_source(self, place: NodeEdges) -> bool:
        bad = self._bad
        if not bad or all(self.edges[edge] not in bad for _, edge in place.leaving):
            return False
        return all(entry not in bad for entry in place.upstream)


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two gradients can be read and hold the same numbers."""
    alike = one.shape == other.shape and one.dtype is other.dtype
    return alike and readable(one) and readable(other) and torch.equal(one, other)


def _nothing(_: LiveNode) -> None:
    """Nobody wants to know."""


class DoctorGradientTable(GradientTable):
    """Knows which entries of its table are not finite as soon as they are measured."""

    def __init__(self, keep: int = 0) -> None:
        # The rules judge by norms: values are kept only for somebody who looks.
        super().__init__(keep=keep, limit=MAX_VALUES if keep else 0, halves=True)
        self.bad: set[int] = set()

    def _append(self, info: GradientInfo) -> int:
        entry = super()._append(info)
        if info.state == "non-finite":
            self.bad.add(entry)
        return entry

    def unread(self) -> int:
        """An entry for gradients that arrived, and that nobody has looked at."""
        return self._enter(GradientInfo("finite"))

    def finite(self, norm: float, dtype: str) -> int:
        """An entry for a finite gradient that has been measured already."""
        return self._enter(GradientInfo("finite", norm=norm, dtype=dtype))

    def _enter(self, info: GradientInfo) -> int:
        # Autograd's threads for other devices fill the same table.
        with self._lock:
            return self._append(info)

    def find_bad(self) -> bool:
        """Wait for what waits on other devices; returns whether anything is not finite."""
        table = enumerate(self.finish())
        self.bad.update(entry for entry, info in table if info.state == "non-finite")
        return bool(self.bad)


class FullCapture(MeasuredCall):
    """A backward call that is about to be made.

    Args:
        call, recorder, number: as for :class:`WatchedCall`.
        table: measures the gradients.
    """

    table: DoctorGradientTable
    flow: DoctorEdgeGradients

    def __init__(
        self,
        call: BackwardCall,
        recorder: Recorder,
        number: int,
        table: DoctorGradientTable | None = None,
    ) -> None:
        walked = walk(edge_of(root)[0] for root in call.roots)
        # The doctor lets the program run on, and drop its graph whenever it likes.
        make_release_safe(walked)
        gradients = DoctorEdgeGradients(walked, table or DoctorGradientTable(), recorder.places)
        super().__init__(call, recorder, number, gradients)
        self.sequences = walked.positions()

    def measured(self) -> None:
        """Measure what the call left, and wait for what waits on other devices."""
        self.note_grads()
        self.table.find_bad()

    @property
    def is_finite(self) -> bool:
        """Whether every gradient on the way was finite."""
        return not self.table.bad

    def source(self) -> int | None:
        """The first node, in backward order, that made a gradient which is not finite of those that
        were."""
        bad, flow = self.table.bad, self.flow
        for index, (node, _, _, _) in enumerate(self.walked.edges):
            if flow.edges[index] in bad and not any(one in bad for one in flow.upstream[node]):
                return node
        return None

    def leaf_numbers(self) -> TensorTable[int]:
        """The leaves with their number in the graph's table."""
        found: TensorTable[int] = TensorTable(len(self.leaf_positions))
        for number, leaf in enumerate(self.variables()):
            if leaf is not None:
                found[leaf] = number
        return found

    def described(self, scopes: Scopes) -> tuple[Assembler, Graph]:
        """The graph as plain data, and what still can give names and places."""
        assembler = Assembler(self.walked, self.recorder, scopes)
        return assembler, assembler.graph(self.call.roots)
