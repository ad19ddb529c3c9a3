"""The order of a training loop, as a protocol that the gradient of every parameter goes through:

    backward ─► (unscale) ─► (clip) ─► step ─► zero

One small state machine for each parameter; what is in one state is a set of ids, so that an event
of hundreds of parameters is a few operations on sets.  Each deviation is kept with its place in the
program and the place that it should stand beside, and how often it was seen.  Knows no torch but
what a gradient holds, and judges nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from gradscope.analyses.training.bad_gradients import BadGradients
from gradscope.analyses.training.idle_optimizers import IdleOptimizers
from gradscope.analyses.training.wasted import WasteTracker
from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import TensorTable
from gradscope.model.loop_observations import OrderKind

_sequence = torch._C._autograd._get_sequence_nr

MAX_PLACES = 1_000
"""Places that are remembered, of each sort."""

MAX_FRESH = 1_000_000
"""Parameters whose gradient waits for a step; beyond it all are forgotten."""

MAX_USED = 200
"""Gradients of which it is known that a step has used them."""

MAX_ASKED = 8
"""Gradients that are read to be sure that what should be gone is gone."""

Ids = frozenset[int] | set[int]


@dataclass
class KnownDisorder:
    """Two calls in the wrong order: the place of the other one, and how often.  ``amount`` are
    parameters, ``fine`` the times that the first was in order."""

    beside: int = -1
    times: int = 0
    fine: int = 0
    amount: int = 0


@dataclass
class Window:
    """The backward calls of one place before each step of another: fewest, most, and in how many
    steps; where the sum was clipped."""

    fewest: int
    most: int
    steps: int = 0
    clipped: int = -1


class _Use(NamedTuple):
    """A step has used a gradient: whose step, and of which versions the gradient and its parameter
    were then."""

    optimizer: int
    gradient: int
    parameter: int


@dataclass
class MadeStep:
    """The last step of an optimizer that changed anything: where, when (sequence number), what."""

    place: int
    sequence: int
    changed: Ids


class _EmptyStep(NamedTuple):
    """A step has found none of the gradients that these should have: where, when, whose."""

    place: int
    sequence: int
    lost: Ids


class _PartZeroed(NamedTuple):
    """An optimizer has zeroed gradients while others waited for a step: where, whose were dropped,
    and who still waits."""

    place: int
    dropped: Ids
    left: set[int]


@dataclass
class LoopOrder:
    """What was seen of the order so far.

    ``steps`` counts the steps of optimizers, also those that a scaler leaves out, ``backwards`` the
    calls of ``backward``; ``fresh`` are the
    parameters whose gradient waits for one; ``latest`` is the place of the last.  ``means``:
    whether each loss from a place was a mean.  ``reached`` are the leaves to which the last call
    has brought a gradient.  ``too_soon`` are the places of steps without a gradient that were made
    between a forward pass and its backward.
    """

    steps: int = 0
    backwards: int = 0
    latest: int = -1
    fresh: set[int] = field(default_factory=set)
    ever: set[int] = field(default_factory=set)
    known: dict[tuple[OrderKind, int], KnownDisorder] = field(default_factory=dict)
    windows: dict[tuple[int, int], Window] = field(default_factory=dict)
    means: dict[int, bool] = field(default_factory=dict)
    wasted: WasteTracker = field(default_factory=WasteTracker)
    reached: Ids = frozenset()
    too_soon: set[int] = field(default_factory=set)
    bad: BadGradients = field(default_factory=BadGradients)
    idle: IdleOptimizers = field(default_factory=IdleOptimizers)
    _clipped: dict[int, int] = field(default_factory=dict)
    _zeroed: dict[int, tuple[int, int]] = field(default_factory=dict)
    _in_part: dict[int, _PartZeroed] = field(default_factory=dict)
    _steps: dict[int, MadeStep] = field(default_factory=dict)
    _scheduled: dict[int, tuple[int, Ids]] = field(default_factory=dict)
    _since: dict[int, int] = field(default_factory=dict)
    _used: TensorTable[_Use] = field(default_factory=lambda: TensorTable(MAX_USED))
    _last_clip: tuple[int, int] = (-1, -1)
    _empty: _EmptyStep | None = None
    _shared: set[int] = field(default_factory=set)
    _meanwhile: set[int] = field(default_factory=set)
    _events: int = 0
    _brought: int = -1

    # ------------------------------------------------------------------ events

    def backward(self, leaves: Ids, place: int) -> None:
        """A call of ``backward`` has brought these a gradient."""
        self._events += 1
        self.backwards += 1
        # Hooks may step while backward still runs.
        leaves, self._meanwhile = leaves - self._meanwhile, set()
        self.reached = leaves
        if len(self.fresh) > MAX_FRESH:
            self.fresh.clear()
            self.ever.clear()
        self.wasted.backward(leaves)
        self.idle.backward(leaves, place)
        self.fresh |= leaves
        self.ever |= leaves
        for one in leaves & self._zeroed.keys():
            del self._zeroed[one]
        for one in leaves & self._clipped.keys():
            del self._clipped[one]
        self._brought = place
        if len(self._since) < MAX_PLACES:
            self._since[place] = self._since.get(place, 0) + 1

    def is_idle(self, parameters: Sequence[torch.Tensor]) -> bool:
        """Whether a step of these would find no gradient but those that steps have used, though
        there were some once and others wait by now."""
        ids = ids_of(parameters)
        if not self.fresh or ids & self.fresh or not ids & self.ever:
            return False
        return all(map(self._is_used, parameters[:MAX_ASKED]))

    def starts(self, root: int, place: int, leaves: Iterable[torch.Tensor]) -> None:
        """``backward`` is about to start from a node with this sequence number."""
        self._meanwhile = set()
        empty, self._empty = self._empty, None
        if empty is not None and empty.sequence > root and ids_of(leaves) & empty.lost:
            self.too_soon.add(empty.place)
        for step in self._steps.values():
            if step.sequence > root and (changed := ids_of(leaves) & step.changed):
                self.note("stale graph", step.place, place, len(changed))

    def note_loss(self, place: int, is_mean: bool) -> None:
        """``backward`` is about to start from a loss, which is a mean or not."""
        if len(self.means) < MAX_PLACES or place in self.means:
            self.means[place] = self.means.get(place, True) and is_mean

    def last_steps(self) -> Collection[MadeStep]:
        """The last step of each optimizer."""
        return self._steps.values()

    def note_stale_part(self, carried: int, place: int, changed: int) -> None:
        """``backward`` is about to go through a part that is older than such a step, and leads to
        so many parameters that this has changed."""
        self.note("stale part", carried, place, changed)

    def clip(self, parameters: Sequence[torch.Tensor], place: int, used_up: bool = False) -> None:
        """Gradients are clipped; ``used_up``: of none, as a generator had been gone through."""
        ids = {id(one) for one in parameters}
        waiting = ids & self.fresh
        # Some programs clip parameter by parameter: that is one clipping.
        again = self._last_clip == (place, self._events)
        self._last_clip = (place, self._events)
        if waiting:
            self.wasted.look()
            self._clipped.update(dict.fromkeys(waiting, place))
            self.fine("clip unused", place)
        elif used_up:
            self.note("clip empty", place, -1, 0)
        elif parameters and not again and all(map(self._is_used, parameters[:MAX_ASKED])):
            self.note("clip unused", place, self.latest, len(ids))

    def clipped_of(self, ids: Ids) -> int:
        """The place that clipped the gradients of these, which wait for a step; -1 for none."""
        return next((self._clipped[one] for one in ids & self._clipped.keys()), -1)

    def scaled(self, clipped: int, place: int) -> None:
        """Gradients that were clipped at the one place are divided by their scale at the other."""
        self.note("clip scaled", clipped, place, 0)

    def zero(self, ids: Ids, place: int, owner: int) -> None:
        """These gradients are zeroed by an optimizer, or (0) a module."""
        self._events += 1
        waiting = ids & self.fresh
        for one in waiting:
            self._zeroed[one] = (place, owner)
        if waiting:
            # What was added up is gone, as after the backward calls of an attack on the input.
            self._since.clear()
        self._drop(ids)
        self._in_part.pop(owner, None)
        if owner and waiting and self.fresh:
            self._in_part[owner] = _PartZeroed(place, waiting, set(self.fresh))
        self.wasted.zero(ids, place, owner)

    def schedule(self, optimizer: int, ids: Ids, place: int) -> None:
        """A scheduler changes the learning rate of an optimizer."""
        if ids & self.fresh:
            self._scheduled[optimizer] = (place, ids)
        elif optimizer in self._steps:
            self.fine("scheduler first", place)
            self.fine("scheduler early", place)
        else:
            self.note("scheduler early", place, -1, 0)

    def step(self, optimizer: int, parameters: Sequence[torch.Tensor], place: int) -> None:
        """An optimizer is about to step."""
        ids = {id(one) for one in parameters}
        self._note_lost(parameters, ids, place)
        self._note_replaced(optimizer, ids, place)
        if not self.ever and all(one.grad is None for one in parameters):
            self.note("step alone", place, -1, len(ids))
        self._note_window(ids, place)
        self._note_again(optimizer, parameters, ids, place)
        self._note_shared(optimizer, parameters, ids, place)
        if optimizer in self._scheduled:
            self.note("scheduler first", self._scheduled.pop(optimizer)[0], place, 0)

    def stepped(
        self, optimizer: int, parameters: Sequence[torch.Tensor], place: int, changed: Ids
    ) -> None:
        """An optimizer has stepped and changed these, or a scaler has left its step out."""
        self.steps += 1
        self._events += 1
        ids = ids_of(parameters)
        used = bool(ids & self.fresh)
        self.wasted.stepped(optimizer, ids, place)
        self.bad.stepped(ids)
        self._meanwhile |= ids
        self._drop(ids)
        shared = (one for one in parameters if id(one) in self._shared)
        for one, gradient in itertools.chain(_asked(parameters), _asked(shared)):
            self._used[gradient] = _Use(optimizer, _version(gradient), _version(one))
        for known in ids & self._zeroed.keys():
            del self._zeroed[known]
        if optimizer not in self._steps:
            self._name_step(place)
        if changed or optimizer not in self._steps:
            self._steps[optimizer] = MadeStep(place, _sequence(), changed)
        self.latest = place
        if used:
            self._since.clear()

    # ------------------------------------------------------------------ deviations

    def _note_lost(self, parameters: Sequence[torch.Tensor], ids: Ids, place: int) -> None:
        """Does it step with parameters whose gradient was dropped after backward?"""
        lost = ids & self._zeroed.keys()
        if not lost:
            return
        asked = [one for one in parameters if id(one) in lost][:MAX_ASKED]
        at, owner = self._zeroed[id(asked[0])]
        is_part = bool(ids & self.fresh)
        # A module's own zero_grad may keep a part as it is, on purpose; and who gathers gradients
        # puts them back by hand.
        if (is_part and not owner) or not all(map(is_gone, asked)):
            return
        kind: OrderKind = "part dropped" if is_part else "dropped"
        self.note(kind, place, at, len(lost))
        self._empty = _EmptyStep(place, _sequence(), lost)

    def _note_replaced(self, optimizer: int, ids: Ids, place: int) -> None:
        """Did another optimizer drop a part of what this one needs, which a later backward call
        has replaced?"""
        for owner, zeroed in self._in_part.items():
            replaced = (ids & zeroed.dropped) - self._zeroed.keys()
            if owner != optimizer and replaced and not zeroed.left.isdisjoint(ids):
                self.note("part dropped", place, zeroed.place, len(replaced))

    def _note_window(self, ids: Ids, place: int) -> None:
        if not ids & self.fresh or not self._since or len(self.windows) >= MAX_PLACES:
            return
        # Of several that were made as often the last.
        backward, times = max(
            self._since.items(), key=lambda item: (item[1], item[0] == self._brought)
        )
        window = self.windows.setdefault((backward, place), Window(times, times))
        window.fewest, window.most = min(window.fewest, times), max(window.most, times)
        window.steps += 1
        window.clipped = max(window.clipped, self.clipped_of(ids))

    def _note_again(
        self, optimizer: int, parameters: Sequence[torch.Tensor], ids: Ids, place: int
    ) -> None:
        """Has its last step used these very gradients, and has nothing changed since?"""
        # Who puts the parameters back, as a line search does, steps from there once more.
        known = self._steps.get(optimizer)
        if known is None or ids & self.fresh:
            return
        uses = [
            self._used.get(gradient) == (optimizer, _version(gradient), _version(one))
            for one, gradient in _asked(parameters)
        ]
        if uses and all(uses):
            self.note("step again", place, known.place, len(ids))

    def _note_shared(
        self, optimizer: int, parameters: Sequence[torch.Tensor], ids: Ids, place: int
    ) -> None:
        """Has another optimizer used some of these gradients, and has nothing changed since?"""
        for other, made in self._steps.items():
            common = (ids & made.changed) - self.fresh if other != optimizer else set()
            if not common:
                continue
            # Asked from the second time on, when it is known which to remember.
            self._shared |= common if len(self._shared) < MAX_PLACES else set()
            uses = [
                self._used.get(gradient) == (other, _version(gradient), _version(one))
                for one, gradient in _asked(one for one in parameters if id(one) in common)
            ]
            if uses and all(uses):
                self.note("step shared", place, made.place, len(common))

    def _name_step(self, place: int) -> None:
        """The first step of an optimizer is what an early scheduler should have waited for."""
        for (kind, _), known in self.known.items():
            if kind == "scheduler early" and known.beside < 0:
                known.beside = place

    def _is_used(self, parameter: torch.Tensor) -> bool:
        """Whether what a parameter holds is none, or what a step has used already."""
        gradient = parameter.grad
        used = self._used.get(gradient)
        return (used is not None and used.gradient == _version(gradient)) or is_gone(parameter)

    def _drop(self, ids: Ids) -> None:
        for zeroed in self._in_part.values():
            zeroed.left.difference_update(ids)
        self.fresh -= ids
        for one in ids & self._clipped.keys():
            del self._clipped[one]
        if self._scheduled:
            self._scheduled = {
                key: known for key, known in self._scheduled.items() if not known[1] & ids
            }

    def _of(self, kind: OrderKind, place: int) -> KnownDisorder:
        if (kind, place) not in self.known and len(self.known) >= MAX_PLACES:
            return KnownDisorder()
        return self.known.setdefault((kind, place), KnownDisorder())

    def fine(self, kind: OrderKind, place: int) -> None:
        """The call at this place was in order."""
        self._of(kind, place).fine += 1

    def note(self, kind: OrderKind, place: int, beside: int, amount: int) -> None:
        """The call at this place was not, with the one at the other."""
        known = self._of(kind, place)
        known.beside = beside if beside >= 0 else known.beside
        known.times += 1
        known.amount = max(known.amount, amount)


def is_gone(parameter: torch.Tensor) -> bool:
    """Whether a parameter holds no gradient that a step could use."""
    gradient = parameter.grad
    # `zero_grad(set_to_none=False)` leaves zeros, which are as good as none.
    return gradient is None or (readable(gradient) and not bool(gradient.detach().any()))


def _asked(parameters: Iterable[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The first parameters that hold a gradient, with that."""
    held = ((one, one.grad) for one in parameters)
    return itertools.islice(((one, grad) for one, grad in held if grad is not None), MAX_ASKED)


def _version(tensor: torch.Tensor | None) -> int:
    """What changes when a tensor is changed in place."""
    return 0 if tensor is None or tensor.is_inference() else tensor._version


def ids_of(tensors: Iterable[torch.Tensor]) -> Ids:
    """What the protocol knows parameters by."""
    return {id(one) for one in tensors}
