"""A backward call that has ended, from its first norm to its row.

Reads numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gradscope.model.rows import ModuleRow, Row
from gradscope.watching.model_parameters import ModelParameters
from gradscope.watching.norms import Norms, together


@dataclass
class Pending:
    """A backward call that has ended, and what is known of it so far: positions in ``norms``."""

    step: int
    call: int
    members: ModelParameters
    norms: Norms
    received: dict[int, int]
    """Parameter to the norm of its gradient."""
    none: set[int]
    scale: int | None = None
    applied: dict[int, int] = field(default_factory=dict)
    changes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Parameter to the norms of its change and of what it was before."""
    skipped: int | None = None

    def row(self) -> Row:
        """What is known now; waits for the devices."""
        known = self.norms.read()
        scale = None if self.scale is None else known[self.scale]
        everything = range(len(self.members.parameters))
        whole = self._part(everything, known, scale)
        left_out = self.skipped is not None and bool(known[self.skipped])
        return Row(
            step=self.step,
            call=self.call,
            scale=scale,
            # A scaler makes no step where a gradient is not finite.
            skipped=left_out or (scale is not None and not self.applied and whole.nonfinite > 0),
            modules={
                name: self._part(positions, known, scale)
                for name, positions in self.members.parts.items()
            },
            **{name: getattr(whole, name) for name in whole.__struct_fields__},
        )

    def _part(
        self, positions: Sequence[int], known: Sequence[float | None], scale: float | None
    ) -> ModuleRow:
        received = [known[self.received[one]] for one in positions if one in self.received]
        applied = [known[self.applied[one]] for one in positions if one in self.applied]
        changes = [self.changes[one] for one in positions if one in self.changes]
        change = together([known[one] for one, _ in changes])
        weight = together([known[one] for _, one in changes])
        norm = together(received)
        none = sum(one in self.none for one in positions)
        return ModuleRow(
            norm=norm / scale if norm is not None and scale else norm,
            applied=together(applied),
            update=change / weight if change is not None and weight else None,
            parameters=len(positions),
            none=none,
            not_reached=len(positions) - none - len(received),
            zero=sum(one == 0 for one in received),
            nonfinite=sum(one is not None and not abs(one) < float("inf") for one in received),
        )
