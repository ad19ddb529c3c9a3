"""Optimizers that never step, though backward calls bring gradients to what only they hold."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradscope.analyses.training.leaves import KnownOptimizer, Leaves
from gradscope.autograd.optimizers import parameters_of
from gradscope.model.loop_observations import MistakenCall

MAX_KNOWN = 200
"""Optimizers that are remembered."""


@dataclass(eq=False)
class _Idle:
    """One that has not stepped: how many tensors only it holds, and the sum of their versions.

    ``calls`` of backward have brought these a gradient, ``alone`` of them nothing to what others
    step; so many others (``passed``) brought them none, and what others step one.  ``at`` is the
    place of the last such call, one alone if there is any.
    """

    known: KnownOptimizer
    optimizer: weakref.ref[Any]
    held: int = 0
    versions: int = -1
    calls: int = 0
    alone: int = 0
    passed: int = 0
    at: int = -1


class IdleOptimizers:
    """Optimizers that the program made, and that wait for their first step."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._waiting: list[_Idle] = []

    def made(self, optimizer: Any, known: KnownOptimizer) -> None:
        """The program has made an optimizer."""
        if known.made >= 0 and len(self._waiting) < MAX_KNOWN:
            self._waiting.append(_Idle(known, weakref.ref(optimizer)))

    def backward(self, leaves: Sequence[torch.Tensor], place: int) -> None:
        """A call of ``backward`` has brought these a gradient."""
        living = list(self._living())
        if not living:
            return
        reached = {self._leaves.get(leaf).optimizer for leaf in leaves} - {None}
        is_shared = any(one is not None and one.stepped for one in reached)
        for one in living:
            is_reached = one.known in reached
            # What is alone counts, from the first such call on.
            if is_reached and not (is_shared and one.alone):
                one.at = place
            one.calls += is_reached
            one.alone += is_reached and not is_shared
            one.passed += is_shared and not is_reached

    def told(self) -> Iterator[MistakenCall]:
        """Tell the optimizers that never step although what they hold gets gradients."""
        list(self._living())
        for one in self._waiting:
            # What others step only sends its gradient on to a network whose turn has not come yet.
            calls = one.alone or min(one.calls, one.passed)
            fine = 0 if one.alone else one.passed
            if calls:
                made, held = one.known.made, (one.held,)
                yield MistakenCall("optimizer idle", one.at, calls, held, other=made, fine=fine)

    def _living(self) -> Iterator[_Idle]:
        """Yield the optimizers that live; of one that is gone, what is known stays."""
        self._waiting = [one for one in self._waiting if not one.known.stepped]
        for one in self._waiting:
            optimizer = one.optimizer()
            tensors = () if optimizer is None else parameters_of(optimizer)
            own = [leaf for leaf in tensors if self._leaves.get(leaf).optimizer is one.known]
            versions = sum(leaf._version for leaf in own if not leaf.is_inference())
            # What the program changes itself waits for no step.
            if own and (len(own), versions) != (one.held, one.versions):
                one.held, one.versions = len(own), versions
                one.calls = one.alone = one.passed = 0
            if optimizer is not None:
                yield one
