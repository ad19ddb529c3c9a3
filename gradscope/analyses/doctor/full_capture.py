"""One backward call of the program, looked at in full; its graph is described if somebody asks.

Walks the graph before the call.  Knows nothing of what other parts have seen.
"""

from __future__ import annotations

import torch

from gradscope.analyses.doctor.measured import DoctorEdgeGradients, DoctorGradientTable
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.nodes import is_leaf
from gradscope.autograd.tensors import TensorTable
from gradscope.autograd.walk import make_release_safe, walk
from gradscope.graphing.assemble import Assembler
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.model.report import Graph
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder


class FullCapture(MeasuredCall):
    """A backward call that is about to be made.

    Args:
        call, recorder, number: as for :class:`WatchedCall`.
        meter: measures the gradients.
    """

    meter: DoctorGradientTable
    flow: DoctorEdgeGradients

    def __init__(
        self,
        call: BackwardCall,
        recorder: Recorder,
        number: int,
        meter: DoctorGradientTable | None = None,
    ) -> None:
        walked = walk(edge_of(root)[0] for root in call.roots)
        make_release_safe(walked)
        gradients = DoctorEdgeGradients(walked, meter or DoctorGradientTable())
        super().__init__(call, recorder, number, gradients)
        self.sequences = {
            node._sequence_nr(): position
            for position, node in enumerate(walked.nodes)
            if not is_leaf(node)
        }

    def measured(self) -> None:
        """Measure what the call left, and wait for what waits on other devices."""
        self.note_grads()
        self.meter.find_bad()

    @property
    def is_finite(self) -> bool:
        """Whether every gradient on the way was finite."""
        return not self.meter.bad

    def leaf_numbers(self) -> TensorTable[int]:
        """The leaves with their number in the graph's table."""
        found: TensorTable[int] = TensorTable(len(self.leaf_positions))
        for number, position in enumerate(self.leaf_positions):
            leaf: torch.Tensor | None = self.walked.nodes[position].variable  # type: ignore[attr-defined]
            if leaf is not None:
                found[leaf] = number
        return found

    def described(self, scopes: Scopes) -> tuple[Assembler, Graph]:
        """The graph as plain data, and what still can give names and places."""
        assembler = Assembler(self.walked, self.recorder, scopes)
        return assembler, assembler.graph(self.call.roots)
