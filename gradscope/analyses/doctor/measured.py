"""The gradients of one backward call as a doctor measures them.

Also notes what a node had saved when it made a gradient that is not finite.  Knows nothing of what
other parts have seen.
"""

from __future__ import annotations

import torch

from gradscope.analyses.doctor.saved_values import summaries
from gradscope.autograd.walk import Walked
from gradscope.graphing.edge_gradients import EdgeGradients, Gradients, NodeEdges
from gradscope.graphing.gradient_table import GradientTable
from gradscope.model.observations import Saved
from gradscope.model.report import GradientInfo

MAX_BIRTHS = 8
"""Nodes whose saved tensors are described, because they made a gradient that is not finite."""


class DoctorEdgeGradients(EdgeGradients):
    """Also looks at what a node had saved when finite gradients came in and others went out.

    ``has_hooks``: the program has hung hooks on tensors, so that gradients may be replaced.
    """

    def __init__(self, walked: Walked, meter: DoctorGradientTable) -> None:
        super().__init__(walked, meter)
        self._bad = meter.bad
        self.saved: list[Saved] = []
        self.replaced: set[int] = set()
        self.has_hooks = False
        self._births = 0

    def _received(self, place: NodeEdges, output: int, gradient: torch.Tensor | None) -> int:
        if self.has_hooks and gradient is not None and len(place.arriving[output]) == 1:
            sent = self._sent[place.arriving[output][0]]
            if sent is not None and sent.tensor() is not gradient:
                self.replaced.add(place.number)
        return super()._received(place, output, gradient)

    def _note_sent(self, place: NodeEdges, sent: Gradients) -> None:
        super()._note_sent(place, sent)
        if self._births < MAX_BIRTHS and self._is_birth(place):
            self._births += 1
            self.saved.extend(summaries(place.number, self.walked.nodes[place.number]))

    def _is_birth(self, place: NodeEdges) -> bool:
        bad = self._bad
        if not bad or all(self.edges[edge] not in bad for _, edge in place.leaving):
            return False
        return all(entry not in bad for entry in place.upstream)


class DoctorGradientTable(GradientTable):
    """Knows which entries of its table are not finite as soon as they are measured."""

    def __init__(self) -> None:
        super().__init__(keep=0, limit=0)
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
        with self._lock:
            return self._append(info)

    def find_bad(self) -> bool:
        """Wait for what waits on other devices; returns whether anything is not finite."""
        table = enumerate(self.finish())
        self.bad.update(entry for entry, info in table if info.state == "non-finite")
        return bool(self.bad)
