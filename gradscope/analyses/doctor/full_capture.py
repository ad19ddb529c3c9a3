"""One backward call of the program, looked at in full; its graph is described if somebody asks.

Walks the graph before the call and measures every gradient on the way.  Knows nothing of what other
parts have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.made import MadeCall
from gradscope.analyses.doctor.measured import DoctorEdgeGradients, DoctorGradientTable
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.isolation import unseen
from gradscope.autograd.nodes import is_leaf
from gradscope.autograd.tensors import TensorTable
from gradscope.autograd.walk import make_release_safe, walk
from gradscope.escaping import message
from gradscope.graphing.assemble import Assembler, backward_pass
from gradscope.graphing.gradient_table import NONE, NOT_REACHED
from gradscope.graphing.probe import given
from gradscope.model.report import Accumulation, BackwardPass, Graph
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder


class FullCapture(MadeCall):
    """A backward call that is about to be made.

    Args:
        call, recorder, number: as for :class:`MadeCall`.
        meter: measures the gradients.
    """

    def __init__(
        self,
        call: BackwardCall,
        recorder: Recorder,
        number: int,
        meter: DoctorGradientTable | None = None,
    ) -> None:
        super().__init__(call, recorder, number)
        self.walked = walk(node for node, _ in self.ends)
        make_release_safe(self.walked)
        self.sequences = {
            node._sequence_nr(): position
            for position, node in enumerate(self.walked.nodes)
            if not is_leaf(node)
        }
        self.leaf_positions = [n for n, node in enumerate(self.walked.nodes) if is_leaf(node)]
        self.meter = meter or DoctorGradientTable()
        self.flow = DoctorEdgeGradients(self.walked, self.meter)
        self.before: list[int | None] = []
        self.after: list[int | None] = []
        # Nodes that a call which failed had sent a gradient, and that did not run.
        self.unfinished: set[int] = set()
        self._seeds: list[int] = []

    @property
    def nodes(self) -> Sequence[LiveNode]:
        """The nodes of the graph."""
        return self.walked.nodes

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The leaves of the graph that still live."""
        found = (self.walked.nodes[position].variable for position in self.leaf_positions)  # type: ignore[attr-defined]
        return [leaf for leaf in found if leaf is not None]

    def prepare(self) -> None:
        """Measure what the call starts from."""
        self.note_seeds()
        self.before = self._grads()

    def note_seeds(self) -> None:
        """Measure the gradients that the call starts with."""
        for root, gradient, (node, output) in zip(
            self.call.roots, self.call.gradients, self.ends, strict=True
        ):
            seed = given(root, gradient)
            position = self.walked.index[node]
            self._seeds.append(NONE if seed is None else self.flow.seed(position, output, seed))

    def run(self) -> None:
        """Make the call."""
        with self.flow.hooked():
            self.make(self.walked.nodes)
        with unseen():
            if self.failure is not None:
                self.unfinished = self.flow.fail()
                return
            if not self.call.accumulates:
                self._note_results()
            self.flow.end()

    # ------------------------------------------------------------------ what came of it

    def measured(self) -> None:
        """Measure what the call left, and wait for what waits on other devices."""
        self.note_grads()
        self.meter.find_bad()

    def note_grads(self) -> None:
        """Measure the gradients that the leaves have now."""
        self.after = self._grads() if self.call.accumulates else [None] * len(self.before)

    @property
    def is_finite(self) -> bool:
        """Whether every gradient on the way was finite."""
        return not self.meter.bad

    def leaf_norms(self) -> Iterator[tuple[torch.Tensor, float]]:
        """The 2-norm of what arrived at each leaf, where something did."""
        table = self.meter.finish()
        for position in self.leaf_positions:
            leaf = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            norm = table[self.flow.upstream[position][0]].norm
            if leaf is not None and norm is not None:
                yield leaf, float(norm)

    def reached(self) -> list[torch.Tensor]:
        """The leaves that the call brought a gradient."""
        found = []
        for position in self.leaf_positions:
            leaf = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            if self.flow.upstream[position][0] not in (NONE, NOT_REACHED) and leaf is not None:
                found.append(leaf)
        return found

    def leaf_numbers(self) -> TensorTable[int]:
        """The leaves with their number in the graph's table."""
        found: TensorTable[int] = TensorTable(len(self.leaf_positions))
        for number, position in enumerate(self.leaf_positions):
            leaf = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            if leaf is not None:
                found[leaf] = number
        return found

    def described(self, scopes: Scopes) -> tuple[Assembler, Graph]:
        """The graph as plain data, and what still can give names and places."""
        assembler = Assembler(self.walked, self.recorder, scopes)
        return assembler, assembler.graph(self.call.roots)

    def flowed(self, graph: Graph, origin: int | None) -> BackwardPass:
        """The gradients as plain data."""
        passed = backward_pass(self.flow, graph, self._seeds)
        accumulations = tuple(
            Accumulation(seen.new, before, after)
            for seen, before, after in zip(
                passed.accumulations, self.before, self.after, strict=True
            )
        )
        error = self.failure
        return msgspec.structs.replace(
            passed,
            number=self.number,
            origin=origin,
            gradients=self.meter.finish(),
            accumulations=accumulations if self.call.accumulates else passed.accumulations,
            error="" if error is None else f"{type(error).__name__}: {message(error)}",
        )

    def _grads(self) -> list[int | None]:
        leaves = [self.walked.nodes[position].variable for position in self.leaf_positions]  # type: ignore[attr-defined]
        if not self.call.accumulates:
            return [None] * len(leaves)
        return [
            None if leaf is None or leaf.grad is None else self.meter.add_held(leaf.grad)
            for leaf in leaves
        ]

    def _note_results(self) -> None:
        for tensor, gradient in zip(self.call.inputs, self.result, strict=False):
            node, output = edge_of(tensor)
            position = self.walked.index.get(node)
            if position is not None and not self.call.batched:
                self.flow.arrived(position, output, gradient)
