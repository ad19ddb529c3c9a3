"""What carries a graph over from one step to the next: the variable, and the line that stores it,
an assignment or a call that fills a container; parts that are older than a step; and what keeps the
graphs of several steps.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.ancestry import MAX_BEHIND
from gradscope.analyses.training.loop_order import LoopOrder, MadeStep, ids_of
from gradscope.autograd.nodes import NO_SEQUENCE, Walked, below, leaf_of, torch_name
from gradscope.autograd.tensors import grad_fn_of
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.model.observations import Carried
from gradscope.recording.names import Scopes, locals_of, value_in_frame
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site, Sources
from gradscope.walks import walk

_COMPUTED = re.compile(r"^(?!None\b)(?!torch\.(zeros|ones|empty|tensor)\b).*[A-Za-z_]", re.DOTALL)


def codes_of(frames: Iterable[FrameType]) -> Iterator[CodeType]:
    """The code of the frames, and of the methods of the objects in them."""
    seen: set[CodeType] = set()
    for frame in frames:
        kinds = {type(value) for value in locals_of(frame).values()}
        members = [member for kind in kinds for member in vars(kind).values()]
        for code in [frame.f_code, *_codes(members)]:
            if code not in seen:
                seen.add(code)
                yield code


def _codes(members: Iterable[object]) -> Iterator[CodeType]:
    """The code of those that are functions."""
    for member in members:
        # Only what is known by its type: others may compute what they are asked for.
        kind = type(member)
        function = member.__func__ if kind in (staticmethod, classmethod) else member  # type: ignore[attr-defined]
        if type(function) is FunctionType:
            yield function.__code__


def sites_of(codes: Iterable[CodeType]) -> Iterator[Site]:
    """All places in them."""
    return (Site(code, offset) for code in codes for offset in range(0, len(code.co_code), 2))


def filling(name: str, frames: list[FrameType], sources: Sources) -> Iterator[Site]:
    """Lines that put something into a container of this name, also in methods of its owner."""
    owner, _, last = name.rpartition(".")
    fills = r"\s*(\.(append|appendleft|extend|insert)\b|\+=)"
    own = {frame.f_code for frame in frames}
    for site in sites_of(codes_of(frames)):
        if site.code not in own and not owner:
            continue
        path = re.escape(name) if site.code in own else rf"\w+\.{re.escape(last)}"
        path = path.replace("'", "['\"]")
        origin = sources.origin(site)
        # `history[k]` is read as well; as a target it is what an assignment gives a value.
        if re.match(path + fills, origin.expression) or re.match(rf"{path}\[", origin.variable):
            yield site


def assigning(name: str, frames: list[FrameType], sources: Sources) -> Iterator[Site]:
    """Lines that assign to this name something that has a name; to an attribute of it also in
    other methods."""
    last = name.rpartition(".")[2] if "." in name else ""
    own = {frame.f_code for frame in frames}
    for site in sites_of(codes_of(frames)):
        origin = sources.origin(site)
        # What it begins with (None, zeros) was not made by an earlier step.
        is_computed = _COMPUTED.search(origin.expression)
        for target in targets(origin.variable) if is_computed else ():
            is_own = target == name and (site.code in own or bool(last))
            if is_own or (last and re.fullmatch(rf"\w+\.{re.escape(last)}", target)):
                yield site


def targets(variable: str) -> list[str]:
    """The names that an assignment gives a value, as an origin has them: ``out, self.state``."""
    parts = re.split(r"[,=]\s*(?![^\[(]*[\])])", variable)
    return [part.strip().strip("()") for part in parts if part.strip()]


class Carrier(NamedTuple):
    """The variable that holds what an earlier step made, the place that stores it there, and the
    one that takes it into the graph of this step."""

    variable: str
    stored: Site | None
    taken: Site | None


def carrier(
    walked: Walked, gone: int, freed: set[int], frames: list[FrameType], recorder: Recorder
) -> Carrier | None:
    """What leads to the node at position ``gone``, of those that earlier calls have ``freed``."""
    new, old = _seam(walked, gone, freed)
    made = recorder.site_of(walked.sequences[old])
    taken = None if new is None else recorder.site_of(walked.sequences[new])
    sources = recorder.sources
    names = targets(sources.origin(made).variable) if made is not None else []
    if new is None:
        # The very result that backward starts from is of an earlier step.
        return Carrier(names[0], made, None) if names else None
    operands = sources.operands(taken) if taken is not None else ()
    both = [name for name in names if name in operands]
    if both:
        return Carrier(", ".join(both), made, taken)
    text = "" if taken is None else sources.origin(taken).expression
    held = [name for name in operands if any(_is_freed(name, one, freed) for one in frames)]
    if held:
        stored = next(assigning(held[0], frames, sources), made)
        return Carrier(held[0], stored, taken)
    for name in operands:
        # A layer or a function that is called carries nothing.
        if re.search(rf"{re.escape(name)}\s*\(", text):
            continue
        stored = next(filling(name, frames, sources), None)
        if stored is None and "." in name:
            stored = next(assigning(name, frames, sources), None)
        if stored is not None:
            return Carrier(name, stored, taken)
    return None


def _seam(walked: Walked, gone: int, freed: set[int]) -> tuple[int | None, int]:
    """The edge from this step's graph into the older one: above it and below it."""
    numbers = walked.sequences
    # Older is also what was made then and had no part in that step's loss.
    last = max((number for number in freed if number < NO_SEQUENCE), default=0)
    above: dict[int, list[int]] = {}
    for source, _, target, _ in walked.edges:
        above.setdefault(target, []).append(source)
    met = []
    for position in walk([gone], lambda one: above.get(one, ())):
        met.append(position)
        for source in above.get(position, ()):
            if last < numbers[source] < NO_SEQUENCE:
                return source, position
    return None, min(met)


def _is_freed(name: str, frame: FrameType, freed: set[int]) -> bool:
    """Whether a variable still holds what an earlier step made."""
    value = value_in_frame(name, frame)
    made = grad_fn_of(value) if issubclass(type(value), torch.Tensor) else None
    return made is not None and made._sequence_nr() in freed


MAX_PARTS = 1_000
"""Parts of which it is remembered what carries them."""

_CAST = "ToCopyBackward0"
"""Autocast casts each parameter once, and keeps the cast while its region lasts."""


class StaleParts:
    """Looks for parts of a graph that are older than a step which changed what they were made of:
    computed once, before the loop or at the beginning of an epoch, and gone through again by each
    backward.  Tells the order of the loop.

    A walk holds the numbers that tell; what carries the part over is asked once a part.
    """

    def __init__(self, recorder: Recorder, order: LoopOrder) -> None:
        self._recorder = recorder
        self._order = order
        self._known: dict[int, int] = {}

    def look(self, made: MeasuredCall) -> None:
        """A call is about to go through this graph."""
        numbers = made.walked.sequences
        own = [
            n < NO_SEQUENCE and torch_name(node) != _CAST
            for n, node in zip(numbers, made.walked.nodes, strict=True)
        ]
        inner = [edge for edge in made.walked.edges if own[edge[2]]]
        # Each thread counts for itself: between two of them a number says nothing of age.
        if any(numbers[source] < numbers[target] for source, _, target, _ in inner):
            return
        for step in self._order.last_steps.values():
            seam = next(
                (to for at, _, to, _ in inner if numbers[to] < step.sequence <= numbers[at]), None
            )
            if seam is not None and (changed := _changed(made.walked, numbers, step)):
                carried = self._carrier(made, seam, numbers, step)
                self._order.odd.tell("stale part", carried, changed, other=made.place)

    def _carrier(self, made: MeasuredCall, seam: int, numbers: list[int], step: MadeStep) -> int:
        """The place that stores what carries the part over, or else made it."""
        known = self._known.get(numbers[seam])
        if known is None:
            recorder = self._recorder
            old = {number for number in numbers if number < step.sequence}
            frames = list(frames_from(made.call.frame, recorder.places))
            found = carrier(made.walked, seam, old, frames, recorder)
            known = recorder.place_of(numbers[seam])
            if found is not None and found.stored is not None:
                known = recorder.places.number_of_site(found.stored)
            if len(self._known) < MAX_PARTS:
                self._known[numbers[seam]] = known
        return known


def _changed(walked: Walked, numbers: list[int], step: MadeStep) -> int:
    """The leaves below the old part that the step has changed."""
    used = {target for source, _, target, _ in walked.edges if numbers[source] < step.sequence}
    leaves = (leaf_of(walked.nodes[one]) for one in used if numbers[one] >= NO_SEQUENCE)
    return len(ids_of(leaf for leaf in leaves if leaf is not None) & step.changed)


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
        is_bounded = cache(lambda name: any(_is_bounded(name, one) for one in frames))
        scopes, sources = Scopes.of_frames(frames), self._recorder.sources
        for tensor in scopes.held_tensors():
            made = grad_fn_of(tensor)
            if made is None:
                continue
            place, steps = self._steps_behind(made)
            if len(steps) >= MANY:
                name, site = scopes.names(tensor)[0], self._recorder.places.site(place)
                # Of several that one line makes, it is what the line takes again.
                is_taken = site is not None and name in sources.operands(site)
                if site is None or name not in targets(sources.origin(site).variable):
                    site = next(assigning(name, frames, sources), site)
                if is_taken or place not in self.known:
                    self.known[place] = Carried(site, name, len(steps))
            step = bisect_right(self._changes, made._sequence_nr())
            # What is newer than the last change is of the current step, and may be held.
            for path in scopes.names(tensor) if step < len(self._changes) else ():
                around = list(_containers(path))
                # What is in one that lets go of the oldest does not grow.
                for name in () if any(map(is_bounded, around)) else around:
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
        return self._recorder.place_of(node._sequence_nr())


def _is_bounded(name: str, frame: FrameType) -> bool:
    """Whether this is a deque with a largest length."""
    value = value_in_frame(name, frame)
    return issubclass(type(value), deque) and deque.maxlen.__get__(value) is not None


def _containers(path: str) -> Iterator[str]:
    """``history`` and ``history[3]['rows']`` for ``history[3]['rows'][0]``: what may hold many."""
    return (path[: match.start()] for match in re.finditer(r"\[", path))
