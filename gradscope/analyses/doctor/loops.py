"""What a training loop carries from one backward call to the next: history, and results that a
container keeps."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch

from gradscope.analyses.doctor.carriers import assigning, filling
from gradscope.autograd.nodes import below, nodes_of
from gradscope.autograd.tensors import grad_fn_of, is_leaf_tensor, requires_grad
from gradscope.model.observations import Carried
from gradscope.recording.names import Scopes, name_in_frame
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall
from gradscope.walks import walk

MAX_WALKED = 400
"""Nodes behind an operand that are searched for the result of the same call."""

NEAREST = 8
"""The same where it must be quick."""

MAX_FRESH = 200_000
"""Results of the current step that are known to be of the current step."""


class CarriedHistories:
    """Calls with an operand that still has the history of an earlier step: ``known``, by place."""

    def __init__(self, recorder: Recorder) -> None:
        self.known: dict[int, Carried] = {}
        self._last: dict[int, int] = {}
        self._looked_at: dict[int, int] = {}
        """The last step in which a place did so, and in which it was looked at."""
        self._recorder = recorder
        self._fresh: set[int] = set()
        self._step = 0
        self._before: tuple[int, int] = (0, 0)
        """Sequence numbers at the last backward call and the one before that."""

    def start_step(self, sequence: int) -> None:
        """A backward call has been made, after the node with this sequence number."""
        self._fresh.clear()
        self._step += 1
        self._before = (sequence, self._before[0])

    def note(self, call: TorchCall, briefly: bool) -> None:
        """Look at one call that made a node, and at nodes behind its operands: at the nearest
        ones where most results are not heard of, and would be taken for those of another step."""
        if self._step:
            self._note_old(call, briefly)
        if len(self._fresh) < MAX_FRESH:
            self._fresh.update(map(id, call.results))

    def _note_old(self, call: TorchCall, briefly: bool) -> None:
        fresh = self._fresh
        for tensor in call.operands:
            # Ids are enough: what is older than the step and lives cannot have the id of something
            # newer.
            if not requires_grad(tensor) or id(tensor) in fresh or is_leaf_tensor(tensor):
                continue
            known = self.known.setdefault(call.place, Carried(call.place, call.function, 0))
            # Once a step, because the walk behind an operand is long.
            if self._looked_at.get(call.place) == self._step:
                return
            self._looked_at[call.place] = self._step
            if self._is_own_result(tensor, call, briefly):
                goes_on = self._last.get(call.place) == self._step - 1
                known.times = known.times + 1 if goes_on else 1
                self._last[call.place] = self._step
                if not known.variable:
                    self._note_name(known, tensor, call)
                return

    def _is_own_result(self, tensor: torch.Tensor, call: TorchCall, briefly: bool) -> bool:
        """Whether the same call made a part of this operand between the last two backward calls."""
        old, older = self._before
        first, end = call.sequence_range

        def onwards(node: Any) -> list[Any]:
            return [one for one in below(node) if one._sequence_nr() >= older]

        made = nodes_of([tensor])
        if made and first <= made[0]._sequence_nr() < end:
            # Changed in place: its node is this call's; what it was lies behind it.
            made = below(made[0])
        # What a sum is added to is next to it, however deep the graph of this step goes.
        starts = (one for one in made if one._sequence_nr() >= older)
        met = walk(starts, onwards, nearest=briefly)
        for node in islice(met, NEAREST if briefly else MAX_WALKED):
            number = node._sequence_nr()
            # What is newer is of this step, as in a loop inside of it.
            span = self._recorder.span_of(number) if number < old else None
            if span is not None and span.place == call.place:
                return True
        return False

    def _note_name(self, known: Carried, tensor: torch.Tensor, call: TorchCall) -> None:
        """What the operand is called, and which line stores it under that name."""
        site, user = call.places.site(call.place), call.user
        if site is None or user is None:
            return
        sources = self._recorder.sources
        known.variable = name_in_frame(tensor, sources.operands(site), user)
        if known.variable:
            frames = list(frames_from(user, call.places))
            known.stored = next(assigning(known.variable, frames, sources), None)


MANY = 4
"""Earlier steps of which something is kept, before it is said that something is."""

SPARSER = 4
"""By how much later each search is than the one before."""


class GrowingContainers:
    """Looks for a container (``keeper``) that gets something with history in every step.

    A few times in a run, and among the variables in sight."""

    def __init__(self) -> None:
        self.keeper: Carried | None = None
        self._ends: deque[int] = deque(maxlen=SPARSER * MANY)
        self._steps = 0
        self._next = MANY

    def is_time(self) -> bool:
        """Whether enough steps have gone by to look again."""
        return self.keeper is None and self._steps >= self._next

    def end_step(self, sequence: int) -> None:
        """The parameters have changed since the backward call at this sequence number."""
        self._steps += 1
        self._ends.append(sequence)

    def look(self, frames: Iterable[FrameType], sources: Sources) -> None:
        """Search the variables in sight."""
        self._next *= SPARSER
        frames = list(frames)
        steps: dict[str, set[int]] = {}
        scopes = Scopes.of_frames(frames)
        for tensor in scopes.held_tensors():
            made = grad_fn_of(tensor)
            if made is None:
                continue
            step = bisect_right(self._ends, made._sequence_nr())
            # What is newer than the last end is of the current step, and may be held.
            if step < len(self._ends):
                for name in (n for path in scopes.names(tensor) for n in _containers(path)):
                    steps.setdefault(name, set()).add(step)
        full = [name for name, of in steps.items() if len(of) >= MANY]
        if full:
            # What is around a full container is full, too: the longest name is the innermost.
            name = max(full, key=len)
            site = next(filling(name, frames, sources), None)
            self.keeper = Carried(site, "append", len(steps[name]), name)


def _containers(path: str) -> Iterator[str]:
    """``history`` and ``history[3]['rows']`` for ``history[3]['rows'][0]``: what may hold many."""
    return (path[: match.start()] for match in re.finditer(r"\[", path))
