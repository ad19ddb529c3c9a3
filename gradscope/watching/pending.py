"""A backward call that has ended, from its first norm to its row.

Reads numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradscope.model.rows import ModuleRow, Row
from gradscope.watching.model_parameters import ModelParameters
from gradscope.watching.norms import together
from gradscope.watching.running_call import RunningCall
from gradscope.watching.steps import Used
from gradscope.watching.turns import Turns


@dataclass
class Pending:
    """A backward call that has ended, and what is known of it so far: positions in the norms of
    what is ``used``, that of the gradients it brought included."""

    step: int
    call: int
    members: ModelParameters
    used: Used
    received: dict[int, int]
    """Parameter to the norm of its gradient."""
    none: set[int]
    scale: int | None = None
    found_inf: int | None = None
    """What the optimizer was told by the scaler."""
    is_left_out: bool = False

    @classmethod
    def of(
        cls,
        call: RunningCall,
        reached: dict[int, torch.Tensor],
        members: ModelParameters,
        turns: Turns,
    ) -> Pending:
        """One that has brought these gradients, by position."""
        norms, applied = call.used.norms, call.used.applied
        received = dict(zip(reached, norms.add(list(reached.values())), strict=True))
        none = {k for k, one in enumerate(members.parameters) if one.grad is None}
        return cls(
            *(turns.step, turns.calls, members, call.used),
            received={**applied, **received},
            none=none - applied.keys(),
            scale=None if call.scale is None else norms.add_number(call.scale),
        )

    def row(self) -> Row:
        """What is known now; waits for the devices."""
        known = self.used.norms.read()
        scale = None if self.scale is None else known[self.scale]
        everything = range(len(self.members.parameters))
        whole = self._part(everything, known, scale)
        found_inf = self.found_inf is not None and bool(known[self.found_inf])
        return Row(
            step=self.step,
            call=self.call,
            scale=scale,
            skipped=self.is_left_out or found_inf,
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
        used = self.used
        applied = [known[used.applied[one]] for one in positions if one in used.applied]
        changes = [used.changes[one] for one in positions if one in used.changes]
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
