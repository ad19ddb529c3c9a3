"""The gradients of one backward call as a doctor measures them.

Also notes what a node had saved when it made a gradient that is not finite.  Knows nothing of what
other parts have seen.
"""

from __future__ import annotations

import math

import torch

from gradscope.capture.exam.saved_values import summaries
from gradscope.capture.flow import Flow, Gradients
from gradscope.capture.meter import NONE, Meter
from gradscope.capture.walk import Walked
from gradscope.observations import Saved
from gradscope.report import GradientInfo

MAX_BIRTHS = 8
"""Nodes whose saved tensors are described, because they made a gradient that is not finite."""

_WIDE = {torch.float32: "float32", torch.float64: "float64"}


class DoctorsFlow(Flow):
    """Also looks at what a node had saved when finite gradients came in and others went out.

    ``has_hooks``: the program has hung hooks on tensors, so that gradients may be replaced.
    """

    def __init__(self, walked: Walked, meter: DoctorsMeter) -> None:
        super().__init__(walked, meter)
        self._bad = meter.bad
        self.saved: list[Saved] = []
        self.replaced: set[int] = set()
        self.has_hooks = False
        self._births = 0

    def _received(self, number: int, output: int, gradient: torch.Tensor | None) -> int:
        if not self.has_hooks:
            return super()._received(number, output, gradient)
        arriving = [edge for to, edge in self._arriving[number] if to == output]
        if gradient is not None and len(arriving) == 1:
            sent = self._sent[arriving[0]]
            if sent is not None and sent.tensor() is not gradient:
                self.replaced.add(number)
        return super()._received(number, output, gradient)

    def _after(self, number: int, sent: Gradients, received: Gradients) -> None:
        super()._after(number, sent, received)
        if self._births < MAX_BIRTHS and self._is_birth(number):
            self._births += 1
            self.saved.extend(summaries(number, self._walked.nodes[number]))

    def _is_birth(self, number: int) -> bool:
        bad = self._bad
        if not bad or all(self.edges[edge] not in bad for _, edge in self._leaving[number]):
            return False
        return all(entry not in bad for entry in self.upstream[number])


class DoctorsMeter(Meter):
    """Knows which entries of its table are not finite as soon as they are measured."""

    def __init__(self) -> None:
        super().__init__(keep=0, limit=0)
        self.bad: set[int] = set()

    def add(self, gradient: torch.Tensor | None) -> int:
        """Measure one gradient and return its index in the table."""
        if gradient is None:
            return NONE
        entry = self._add_ordinary(gradient)
        if entry is None:
            entry = super().add(gradient)
            if self._table[entry].state == "non-finite":
                self.bad.add(entry)
        return entry

    def _add_ordinary(self, gradient: torch.Tensor) -> int | None:
        """The way of nearly all gradients: dense, on the CPU, finite and not zero."""
        if type(gradient) is not torch.Tensor or gradient.dtype not in _WIDE:
            return None
        if not gradient.is_cpu or gradient.layout is not torch.strided:
            return None
        if torch._C._len_torch_dispatch_stack() or gradient.is_nested:
            return None
        with torch._C.DisableTorchFunction():
            still = gradient.detach() if gradient.requires_grad else gradient
            norm = torch.linalg.vector_norm(still).item()
        if not 0 < norm < math.inf:
            return None
        return self.finite(norm, _WIDE[gradient.dtype])

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
