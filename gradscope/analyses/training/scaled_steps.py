"""Steps that go through a GradScaler: how many it left out, and what became of its scale.

Told by :class:`~gradscope.analyses.training.loop_calls.LoopCalls`.  Knows nothing of the Report.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from gradscope.recording.source import Site


@dataclass
class ScaledSteps:
    """The steps of all scalers of a run.

    ``before`` is the scale at the first step that was left out, ``after`` that after the last such.
    ``overflow`` is the op, and its place, whose backward made the first gradient that was not
    finite, where the call before a step left out was looked at in full.
    """

    steps: int = 0
    skipped: int = 0
    before: float | None = None
    after: float | None = None
    overflow: tuple[str, Site | None] | None = None
    _source: tuple[str, Site | None] | None = None
    _waiting: weakref.ref[Any] | None = None

    def start_call(self) -> None:
        """A backward call is about to be made: what the one before it overflowed at is told."""
        self._source = None

    def note_source(self, op: str, site: Site | None) -> None:
        """Backward of this op has made a gradient that is not finite of a finite one."""
        self._source = self._source or (op, site)

    def note_step(self, scaler: Any, optimizer: Any) -> None:
        """``scaler.step(optimizer)`` has returned."""
        # Private: in public a scaler only tells by a smaller scale, and not of which optimizer.
        state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer), {})
        found = state.get("found_inf_per_device", {})
        if not found:
            return  # disabled, or of another kind
        self.steps += 1
        if not any(float(one) for one in found.values()):
            return
        self.skipped += 1
        scale = float(scaler.get_scale())
        self.before = scale if self.before is None else self.before
        self.after = scale
        self.overflow = self.overflow or self._source
        self._waiting = weakref.ref(scaler)

    def note_update(self, scaler: Any) -> None:
        """``scaler.update()`` has returned."""
        waiting: Any = self._waiting and self._waiting()
        if waiting is scaler:
            self.after = float(scaler.get_scale())
            self._waiting = None
