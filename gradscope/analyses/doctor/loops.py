"""What a training loop carries from one backward call to the next: variables whose history leads
through several steps, and containers that keep results with theirs."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import FrameType

from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.ancestry import MAX_BEHIND
from gradscope.analyses.doctor.carriers import assigning, filling, targets
from gradscope.autograd.nodes import below
from gradscope.autograd.tensors import grad_fn_of
from gradscope.model.observations import Carried
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.walks import walk

MANY = 4
"""Steps whose results are in a history, or in a container, before it is said."""

SPARSER = 2
"""By how much later each search is than the one before."""

MAX_WALKED = 40_000
"""Nodes behind all variables together that one search goes through."""

MAX_STEPS = 16
"""Earlier steps that are told apart."""


class CarriedHistories:
    """Looks for variables that carry their history from step to step, and for the container that
    gets something with history in every step: ``known``, by place.

    A few times in a run, and among the variables in sight.  For a variable each backward call ends
    a step; what a container gets may be used together, as of several batches, so that for one it
    ends where the parameters have changed.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.start_anew()

    def start_anew(self) -> None:
        """What was made so far was a part of a step."""
        self.known: dict[object, Carried] = {}
        self._calls: deque[int] = deque(maxlen=MAX_STEPS)
        self._changes: deque[int] = deque(maxlen=MAX_STEPS)
        self._next = MANY
        self._made = self._left = 0

    def end_call(self, sequence: int) -> None:
        """A backward call has been made, after the node with this sequence number."""
        self._calls.append(sequence)
        self._made += 1

    def end_step(self) -> None:
        """The parameters have changed since the last backward call."""
        self._changes.extend(islice(reversed(self._calls), 1))

    def look(self, frame: FrameType) -> None:
        """Search the variables that a call in this frame sees, if it is time to."""
        if self._made < self._next or self.known:
            return
        self._next *= SPARSER
        self._left = MAX_WALKED
        frames = list(frames_from(frame, self._recorder.places))
        kept: dict[str, set[int]] = {}
        scopes, sources = Scopes.of_frames(frames), self._recorder.sources
        for tensor in scopes.held_tensors():
            made = grad_fn_of(tensor)
            if made is None:
                continue
            place, steps = self._steps_behind(made)
            if len(steps) >= MANY:
                name, site = scopes.names(tensor)[0], self._recorder.places.site(place)
                if site is None or name not in targets(sources.origin(site).variable):
                    site = next(assigning(name, frames, sources), site)
                self.known[place] = Carried(site, name, len(steps))
            step = bisect_right(self._changes, made._sequence_nr())
            # What is newer than the last change is of the current step, and may be held.
            if step < len(self._changes):
                for name in (n for path in scopes.names(tensor) for n in _containers(path)):
                    kept.setdefault(name, set()).add(step)
        full = [name for name, of in kept.items() if len(of) >= MANY]
        if full:
            # What is around a full container is full, too: the longest name is the innermost.
            name = max(full, key=len)
            site = next(filling(name, frames, sources), None)
            self.known[name] = Carried(site, name, len(kept[name]), is_container=True)

    def _steps_behind(self, made: LiveNode) -> tuple[int, set[int]]:
        """The place that made a result, and the steps in which it has made what went into it."""
        place = self._place(made)
        most = min(MAX_BEHIND, self._left) if place >= 0 else 0
        met = list(islice(walk([made], below, nearest=True), most))
        self._left -= len(met)
        again = (node for node in met if self._place(node) == place)
        return place, {bisect_right(self._calls, node._sequence_nr()) for node in again}

    def _place(self, node: LiveNode) -> int:
        return self._recorder.place_of(self._recorder.span_of(node._sequence_nr()))


def _containers(path: str) -> Iterator[str]:
    """``history`` and ``history[3]['rows']`` for ``history[3]['rows'][0]``: what may hold many."""
    return (path[: match.start()] for match in re.finditer(r"\[", path))
