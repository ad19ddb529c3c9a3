"""The order of a training loop, as a protocol that the gradient of every parameter goes through:

    backward ─► (unscale) ─► (clip) ─► step ─► zero

One small state machine for each parameter; what is in one state is a set of ids, so that an event
of hundreds of parameters is a few operations on sets.  Each deviation is kept with its place in the
program and the place that it should stand beside, and how often it was seen.  Knows no torch but
what a gradient holds, and judges nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from gradscope.analyses.training.leaves import KnownOptimizer, is_gone
from gradscope.analyses.training.used_gradients import BadGradients, version_of
from gradscope.autograd.nodes import sequence_number
from gradscope.autograd.tensors import TensorTable
from gradscope.model.observations import MistakeKind, MistakenCall

MAX_FRESH = 1_000_000
"""Parameters whose gradient waits for a step; beyond it all are forgotten."""

MAX_USED = 200
"""Gradients of which it is known that a step has used them."""

MAX_ASKED = 8
"""Gradients that are read to be sure that what should be gone is gone."""

Ids = frozenset[int] | set[int]


class MistakenCalls:
    """Counts calls that do not do what they were written for, by kind and place."""

    def __init__(self) -> None:
        self.known: dict[tuple[MistakeKind, int], MistakenCall] = {}

    def _of(self, kind: MistakeKind, place: int) -> MistakenCall:
        fresh = MistakenCall(kind, place, 0)
        return self.known.setdefault((kind, place), fresh) if place >= 0 else fresh

    def fine(self, kind: MistakeKind, place: int) -> None:
        """Note that this time the call at this place was as it should be."""
        self._of(kind, place).fine += 1

    def tell(
        self, kind: MistakeKind, place: int, parameters: int = 0, other: int = -1
    ) -> MistakenCall:
        """Count one more call of this kind at this place."""
        known = self._of(kind, place)
        known.times += 1
        known.parameters = max(known.parameters, parameters)
        known.other = other if other >= 0 else known.other
        return known


@dataclass
class MadeStep:
    """The last step of an optimizer that changed anything: where, when (sequence number), what."""

    place: int
    sequence: int
    changed: Ids


class _EmptyStep(NamedTuple):
    """A step has found none of the gradients that these should have: what is told of it, where and
    when it was made, whose."""

    known: MistakenCall
    place: int
    sequence: int
    lost: Ids


_CLIPS: tuple[MistakeKind, MistakeKind] = ("clip unused", "clip elsewhere")
"""A clipping that finds no gradient that waits for a step: of none at all, and of some."""


@dataclass
class LoopOrder:
    """What was seen of the order so far.

    ``steps`` counts the steps of optimizers, also those that a scaler leaves out; ``fresh`` are the
    parameters whose gradient waits for one, ``ever`` those to which ``backward`` ever brought one;
    ``latest`` is the place of the last.  ``last_steps`` are by optimizer; ``odd``
    is told of all deviations.
    """

    steps: int = 0
    latest: int = -1
    fresh: set[int] = field(default_factory=set)
    ever: set[int] = field(default_factory=set)
    odd: MistakenCalls = field(default_factory=MistakenCalls)
    last_steps: dict[KnownOptimizer, MadeStep] = field(default_factory=dict)
    bad: BadGradients = field(default_factory=BadGradients)
    _clipped: dict[int, int] = field(default_factory=dict)
    _zeroed: dict[int, int] = field(default_factory=dict)
    _used: TensorTable[int] = field(default_factory=lambda: TensorTable(MAX_USED))
    _last_clip: tuple[int, int] = (-1, -1)
    _empty: _EmptyStep | None = None
    _meanwhile: set[int] = field(default_factory=set)
    _events: int = 0

    # ------------------------------------------------------------------ events

    def backward(self, leaves: Ids) -> None:
        """A call of ``backward`` has brought these a gradient."""
        self._events += 1
        # Hooks may step while backward still runs.
        leaves, self._meanwhile = leaves - self._meanwhile, set()
        if len(self.fresh) > MAX_FRESH:
            self.fresh.clear()
            self.ever.clear()
        self.fresh |= leaves
        self.ever |= leaves
        for one in leaves & self._zeroed.keys():
            del self._zeroed[one]
        for one in leaves & self._clipped.keys():
            del self._clipped[one]

    def starts(self, root: int, place: int, leaves: Iterable[torch.Tensor]) -> None:
        """``backward`` is about to start from a node with this sequence number."""
        self._meanwhile = set()
        empty, self._empty = self._empty, None
        if empty is not None and empty.sequence > root and ids_of(leaves) & empty.lost:
            empty.known.times -= 1
            zeroed = empty.known.origin
            self.odd.tell("step too soon", empty.place, other=-1 if zeroed is None else zeroed)
        for step in self.last_steps.values():
            if step.sequence > root and (changed := ids_of(leaves) & step.changed):
                self.odd.tell("stale graph", step.place, len(changed), other=place)

    def clip(self, parameters: Sequence[torch.Tensor], place: int, used_up: bool = False) -> None:
        """Gradients are clipped; ``used_up``: of none, as a generator had been gone through."""
        ids = {id(one) for one in parameters}
        waiting = ids & self.fresh
        # Some programs clip parameter by parameter: that is one clipping.
        again = self._last_clip == (place, self._events)
        self._last_clip = (place, self._events)
        if waiting:
            self._clipped.update(dict.fromkeys(waiting, place))
            for kind in _CLIPS:
                self.odd.fine(kind, place)
        elif used_up:
            self.odd.tell("clip empty", place)
        elif parameters and not again and all(map(self._is_used, parameters[:MAX_ASKED])):
            # With others that wait it may well stand where it belongs.
            self.odd.tell(_CLIPS[bool(self.fresh)], place, len(ids), other=self.latest)

    def clipped_of(self, ids: Ids) -> int:
        """The place that clipped the gradients of these, which wait for a step; -1 for none."""
        return next((self._clipped[one] for one in ids & self._clipped.keys()), -1)

    def zero(self, ids: Ids, place: int) -> None:
        """These gradients are zeroed by an optimizer, or by a module."""
        self._events += 1
        self._zeroed.update(dict.fromkeys(ids & self.fresh, place))
        self._drop(ids)

    def step(self, parameters: Sequence[torch.Tensor], place: int) -> None:
        """An optimizer is about to step."""
        ids = {id(one) for one in parameters}
        self._note_lost(parameters, ids, place)
        if not self.ever and all(one.grad is None for one in parameters):
            self.odd.tell("step alone", place, len(ids))

    def stepped(
        self,
        optimizer: KnownOptimizer,
        parameters: Sequence[torch.Tensor],
        place: int,
        changed: Ids,
    ) -> None:
        """An optimizer has stepped and changed these, or a scaler has left its step out."""
        self.steps += 1
        self._events += 1
        ids = ids_of(parameters)
        self.bad.stepped(ids)
        self._meanwhile |= ids
        self._drop(ids)
        for gradient in _asked(parameters):
            self._used[gradient] = version_of(gradient)
        for known in ids & self._zeroed.keys():
            del self._zeroed[known]
        if changed or optimizer not in self.last_steps:
            self.last_steps[optimizer] = MadeStep(place, sequence_number(), changed)
        self.latest = place

    # ------------------------------------------------------------------ deviations

    def _note_lost(self, parameters: Sequence[torch.Tensor], ids: Ids, place: int) -> None:
        """Does it step with parameters whose gradient was dropped after backward?"""
        lost = ids & self._zeroed.keys()
        if not lost:
            return
        asked = [one for one in parameters if id(one) in lost][:MAX_ASKED]
        # Who drops a part of them keeps that part as it is, and who gathers gradients puts them
        # back by hand.
        if ids & self.fresh or not all(map(is_gone, asked)):
            return
        known = self.odd.tell("dropped", self._zeroed[id(asked[0])], len(lost), other=place)
        self._empty = _EmptyStep(known, place, sequence_number(), lost)

    def _is_used(self, parameter: torch.Tensor) -> bool:
        """Whether what a parameter holds is none, or what a step has used already."""
        gradient = parameter.grad
        used = self._used.get(gradient)
        return (used is not None and used == version_of(gradient)) or is_gone(parameter)

    def _drop(self, ids: Ids) -> None:
        self.fresh -= ids
        for one in ids & self._clipped.keys():
            del self._clipped[one]


def _asked(parameters: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The gradients of the first parameters that hold one."""
    held = (grad for one in parameters if (grad := one.grad) is not None)
    return itertools.islice(held, MAX_ASKED)


def ids_of(tensors: Iterable[torch.Tensor]) -> Ids:
    """What the protocol knows parameters by."""
    return {id(one) for one in tensors}
