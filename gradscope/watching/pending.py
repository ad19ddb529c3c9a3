"""A backward call, from what was in ``.grad`` before it to its row.

Reads numbers only.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gradscope.autograd.elements import has_data, readable
from gradscope.autograd.originals import living_optimizers
from gradscope.autograd.tensors import dense_parts
from gradscope.model.rows import ModuleRow, Row, TermRow
from gradscope.recording.wrappers import copies
from gradscope.watching.arrivals import Arrivals
from gradscope.watching.norms import ModelParameters, Norms, together
from gradscope.watching.turns import Turns

MOST_ELEMENTS = 65_536
"""Of each parameter, those whose change by a step is measured."""

Sample = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""A parameter, elements of it and a copy of those."""


@dataclass
class Used:
    """What steps have used and changed, as positions in ``norms``, by the id of the parameter."""

    norms: Norms = field(default_factory=Norms)
    applied: dict[int, int] = field(default_factory=dict)
    """The norm of the gradient that was used."""
    changes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The norms of what a parameter was changed by, and of what it was before."""


@dataclass
class Stepping:
    """The step that is being made."""

    optimizer: Any = None
    samples: Sequence[Sample] = ()
    """What was taken before it, if it is to be looked at."""
    is_inside: bool = False
    """Whether it is made by an optimizer of the model."""
    made: int = 0
    """So many were made."""


def holders(members: ModelParameters) -> list[tuple[Any, list[int]]]:
    """The optimizers that hold one of these parameters, each with the ids of those."""
    found = ((one, [*map(id, members.held_by(one))]) for one in living_optimizers())
    return [one for one in found if one[1]]


def sampled(parameters: list[torch.Tensor]) -> list[Sample]:
    """At most so many elements of each, evenly spaced, as one row; of none whose elements cannot
    be had without a copy of all."""
    found = []
    for parameter in parameters:
        still = parameter.detach()
        # Of a distributed one, the local part.
        still = still.to_local() if hasattr(still, "to_local") else still
        # Torch cannot subtract numbers of one byte.
        if readable(still) and still.is_contiguous() and still.numel() and still.itemsize > 1:
            live = still.view(-1)[:: -(-still.numel() // MOST_ELEMENTS)]
            found.append((parameter, live, live.clone()))
    return found


def note_step(held: list[torch.Tensor], taken: Sequence[Sample], into: Used) -> None:
    """Add what a step has used and changed of the parameters that its optimizer holds."""
    norms = into.norms
    found = {id(one): gradient for one in held if (gradient := one.grad) is not None}
    into.applied.update(zip(found, norms.add(list(found.values())), strict=True))
    taken = [one for one in taken if readable(one[1])]
    changes = norms.add([live - old for _, live, old in taken])
    weights = norms.add([old for _, _, old in taken])
    for (parameter, *_), change, weight in zip(taken, changes, weights, strict=True):
        into.changes[id(parameter)] = change, weight


class Scalers:
    """The scalers of losses that have been scaled, and those losses; keeps none of them alive."""

    def __init__(self) -> None:
        self._of_loss: Any = WeakTensorKeyDictionary()
        self._last: Any = None

    def scaled(self, scaler: Any, losses: Any) -> None:
        """A scaler has made these losses."""
        self._last = weakref.ref(scaler)
        if isinstance(losses, torch.Tensor):
            self._of_loss[losses] = self._last

    def scale_of(self, roots: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """The scale of the loss that a backward call begins at, or of what it was computed from."""
        # The program may divide or add up what a scaler has made, and the root is then another.
        last, self._last = self._last, None
        found = next((self._of_loss[root] for root in roots if root in self._of_loss), last)
        # In public a scaler tells it only by waiting for the device.
        scale = getattr(found and found(), "_scale", None)
        return scale if isinstance(scale, torch.Tensor) else None


@dataclass
class RunningCall:
    """A backward call that runs.

    ``used`` is of optimizers that make their steps meanwhile, in hooks of their parameters.
    """

    members: ModelParameters
    before: dict[int, tuple[torch.Tensor | None, object]]
    """The ``.grad`` of each parameter, by its id, and its version."""
    scale: torch.Tensor | None
    step: int
    terms: Mapping[str, TermRow] = field(default_factory=dict)
    arrivals: Arrivals | None = None
    """Of one that is looked at."""
    used: Used = field(default_factory=Used)
    has_steps: bool = False

    @classmethod
    def begun(cls, members: ModelParameters, scale: torch.Tensor | None, step: int) -> RunningCall:
        gradients = [one.grad for one in members.parameters]
        found = [(gradient, _version(gradient)) for gradient in gradients]
        return cls(members, dict(zip(members.positions, found, strict=True)), scale, step)

    def reached(self, members: ModelParameters) -> dict[int, torch.Tensor]:
        """The gradients that it has brought or added to, by position."""
        found = {}
        for position, parameter in enumerate(members.parameters):
            gradient = parameter.grad
            # FSDP puts others in the place of parameters while it computes.
            old, version = self.before.get(id(parameter), (None, None))
            if gradient is not None and (gradient is not old or _version(gradient) != version):
                found[position] = gradient
        return found


def _version(gradient: torch.Tensor | None) -> object:
    if gradient is None:
        return None
    # Of what is made in inference mode torch counts none, so that it counts as changed.
    if gradient.is_inference():
        return object()
    if type(gradient) is torch.Tensor or not hasattr(gradient, "to_local"):
        return gradient._version
    # FSDP adds to the local part of a distributed one.
    return [one._version for one in dense_parts(gradient)[0]]


Norms4 = tuple[float | None, float | None, float | None, float | None]
"""Of a parameter: of its gradient, of that which was used, of its change, of what it was before."""


def _is_bad(norm: float | None) -> bool:
    return norm is not None and not abs(norm) < inf


@dataclass
class Pending:
    """A backward call that has ended, and what is known of it so far: positions in the norms of
    what is ``used``, that of the gradients it brought included.  Where it has added to what calls
    before it have brought, it stands for all of them."""

    step: int
    call: int
    members: ModelParameters
    used: Used
    received: dict[int, int]
    """Parameter to the norm of its gradient."""
    none: set[int]
    scale: int | None = None
    terms: Mapping[str, TermRow] = field(default_factory=dict)
    loss: int | None = None
    found_inf: int | None = None
    """What the optimizer was told by the scaler."""
    is_left_out: bool = False
    order: Sequence[int] = ()
    """Parameters, as their gradients came."""
    local: dict[int, int] = field(default_factory=dict)
    """As ``received``, where others add to it before the call is over."""
    copies: dict[int, int] = field(default_factory=dict)
    """Parameter to the number of processes that hold the same shard of it."""
    left: dict[int, tuple[int, object]] = field(default_factory=dict)
    """Parameter to the id of its ``.grad`` when the call ended, and the version of that."""
    calls: int = 1
    """It, and those before it that it stands for as well."""
    total: torch.Tensor | None = None
    """The sum of the losses of all these calls, scaled as they are."""

    @classmethod
    def of(
        cls,
        call: RunningCall,
        reached: dict[int, torch.Tensor],
        members: ModelParameters,
        turns: Turns,
        earlier: Pending | None = None,
    ) -> Pending:
        """One that has brought these gradients, by position, beside what an earlier one has."""
        norms = call.used.norms
        if earlier is not None:
            every = enumerate(members.parameters)
            also = {k: one.grad for k, one in every if k in earlier.received}
            reached = {**{k: one for k, one in also.items() if one is not None}, **reached}
        known = members.positions
        applied = {known[one]: norm for one, norm in call.used.applied.items() if one in known}
        received = dict(zip(reached, norms.add(list(reached.values())), strict=True))
        none = {k for k, one in enumerate(members.parameters) if one.grad is None}
        found = cls(
            *(call.step, turns.calls, members, call.used),
            received={**applied, **received},
            none=none - applied.keys(),
            scale=None if call.scale is None else norms.add_number(call.scale),
            terms=call.terms,
        )
        found.left = {k: (id(one), _version(one)) for k, one in reached.items()}
        if earlier is not None:
            found.calls, found.total = earlier.calls + 1, earlier.total
        if call.arrivals is not None:
            came = call.arrivals
            found.order = [known[id(one)] for one in came.order if id(one) in known]
            found.local = {known[one]: norm for one, norm in came.norm_of.items() if one in known}
            spread = map(copies, members.parameters) if came.is_one_of_many else ()
            found.copies = {position: count for position, count in enumerate(spread) if count}
        return found

    def note_loss(self, roots: Sequence[Any]) -> None:
        """The call began at these; of one that is a single number the value is read with all
        others."""
        root = roots[0] if len(roots) == 1 else None
        is_number = type(root) is torch.Tensor and root.numel() == 1 and not root.is_complex()
        if root is None or not is_number or not has_data(root):
            self.total = None
            return
        number = root.detach().to(torch.float64, copy=True).reshape(())
        if self.calls > 1 and self.total is None:
            return  # that of a call before is not known
        self.total = number if self.total is None else number + self.total.to(number.device)
        self.loss = self.used.norms.add_number(self.total)

    def is_added_to(self, call: RunningCall, members: ModelParameters) -> bool:
        """Whether a call that has ended has added to the gradients that this one has left, and no
        step has used them meanwhile."""
        if (
            self.used.applied
            or self.is_left_out
            or call.step != self.step
            or self.members.positions != members.positions
        ):
            return False
        ids = {position: key for key, position in members.positions.items()}
        before = {k: call.before.get(ids[k], (None, None)) for k in self.left}
        return any(
            old is not None and (id(old), version) == self.left[k]
            for k, (old, version) in before.items()
        )

    @property
    def is_used_up(self) -> bool:
        """Whether steps have used all that it has brought."""
        every = self.members.parameters
        return all(id(every[position]) in self.used.applied for position in self.received)

    def leave_out(self) -> None:
        """A scaler has left out the step of an optimizer."""
        self.is_left_out = True

    def take_step(self, optimizer: Any, taken: Sequence[Sample]) -> None:
        """The optimizer has made its step; of these elements of its parameters there are copies."""
        note_step(self.members.held_by(optimizer), taken, self.used)
        # An optimizer that does the scaler's work leaves the step out by itself.
        found = getattr(optimizer, "found_inf", None)
        if self.scale is not None and isinstance(found, torch.Tensor):
            self.found_inf = self.used.norms.add_number(found)

    def is_for(self, optimizer: Any) -> bool:
        """Whether a step of this optimizer uses what the call has brought, not what one of another
        thread has."""
        held = self.members.held_by(optimizer)
        return any(self.members.positions[id(one)] in self.received for one in held)

    def row(self, others: Sequence[Mapping[int, Norms4]] = ()) -> Row:
        """What is known now, with the :meth:`shards` of others; waits for the devices."""
        table = self._table(self.received)
        for position, own in self.shards().items():
            columns = zip(own, *(one[position] for one in others if position in one), strict=True)
            table[position] = _together(columns)
        return self._row(table)

    def own(self) -> Row:
        """Return the row of this process alone, before all processes average their gradients."""
        return self._row(self._table({**self.received, **self.local}))

    def shards(self) -> dict[int, Norms4]:
        """This process's share of what is spread over several; what they hold twice counts once."""
        table = self._table(self.received) if self.copies else {}
        return {
            one: _together([[norm and norm / count**0.5] for norm in table[one]])
            for one, count in self.copies.items()
        }

    def _table(self, received: dict[int, int]) -> dict[int, Norms4]:
        known = [*self.used.norms.read(), None]
        applied, changes = self.used.applied, self.used.changes
        table = {}
        for position, one in enumerate(map(id, self.members.parameters)):
            own, (change, before) = known[received.get(position, -1)], changes.get(one, (-1, -1))
            table[position] = own, known[applied.get(one, -1)], known[change], known[before]
        return table

    def _row(self, table: dict[int, Norms4]) -> Row:
        known = self.used.norms.read()
        scale = None if self.scale is None else known[self.scale]
        loss = None if self.loss is None else known[self.loss]
        whole = self._part(table, table, scale)
        found_inf = self.found_inf is not None and bool(known[self.found_inf])
        bad = next((one for one in self.order if _is_bad(table[one][0])), -1)
        return Row(
            step=self.step,
            call=self.call,
            loss=loss / scale if loss is not None and scale else loss,
            first="".join(name for name, own in self.members.parts.items() if bad in own),
            scale=scale,
            calls=self.calls,
            terms={name: _unscaled(one, scale or 1.0) for name, one in self.terms.items()},
            skipped=self.is_left_out or found_inf,
            modules={
                name: self._part(positions, table, scale)
                for name, positions in self.members.parts.items()
            },
            **{name: getattr(whole, name) for name in whole.__struct_fields__},
        )

    def _part(
        self, positions: Collection[int], table: dict[int, Norms4], scale: float | None
    ) -> ModuleRow:
        rows = [table[one] for one in positions]
        norm, applied, change, weight = _together(zip(*rows, strict=True))
        none = sum(one in self.none for one in positions)
        return ModuleRow(
            norm=norm / scale if norm is not None and scale else norm,
            applied=applied,
            update=change / weight if change is not None and weight else None,
            parameters=len(positions),
            none=none,
            not_reached=len(positions) - none - sum(one in self.received for one in positions),
            zero=sum(norm == 0 for norm, *_ in rows),
            nonfinite=sum(_is_bad(norm) for norm, *_ in rows),
            spoiled=sum(_is_bad(weight) for *_, weight in rows),
        )


def _unscaled(term: TermRow, scale: float) -> TermRow:
    modules = {name: norm / scale for name, norm in term.modules.items()}
    return msgspec.structs.replace(term, norm=term.norm / scale, modules=modules)


def _together(columns: Iterable[Iterable[float | None]]) -> Norms4:
    norm, applied, change, weight = ([*column] for column in columns)
    return together(norm), together(applied), together(change), together(weight)
