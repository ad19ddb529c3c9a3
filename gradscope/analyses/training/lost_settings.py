"""Settings of an optimizer that miss what they were meant for: weight decay given to the wrong
group of parameters, and a learning rate that is set where nobody reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from gradscope.analyses.training.stores import assigning, setting
from gradscope.recording.names import value_in_frame
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site

MAX_TAKEN = 100
"""Copies of groups that are followed until the next step."""

_RATES = ("lr", "learning_rate")
_Groups = Sequence[Mapping[str, Any]]


class _CopiedGroups(NamedTuple):
    """Groups that ``state_dict()`` has copied: where, and their rates then."""

    place: int
    groups: _Groups
    rates: Sequence[Any]


class LostSettings:
    """Such settings; ``tell`` is told of them as :meth:`Oddities.tell` is."""

    def __init__(self, recorder: Recorder) -> None:
        self.tell: Callable[..., None] | None = None
        self._recorder = recorder
        self._taken: dict[int, _CopiedGroups] = {}
        self._set_at: dict[int, Site | None] = {}

    def made(self, optimizer: Any, place: int, frame: FrameType | None) -> None:
        """The program has made an optimizer, from this frame."""
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if twice := len(tensors) - len(set(map(id, tensors))):
            self._tell("listed twice", place, twice)
        kind, figures = _wrong_decay(optimizer.param_groups)
        if kind and frame is not None:
            sources, site = self._recorder.sources, self._recorder.places.site_of(frame)
            names = () if site is None else sources.operands(site)
            values = ((name, value_in_frame(name, frame)) for name in names)
            groups = [
                name
                for name, value in values
                if type(value) is list and any(one is optimizer.param_groups[0] for one in value)
            ]
            sites = (found for name in groups for found in assigning(name, [frame], sources))
            self._tell(kind, place, *figures, site=next(sites, None))

    def copied(self, number: int, state: object, place: int) -> None:
        """The program asks for the state of an optimizer: its groups are copies."""
        groups = state.get("param_groups") if type(state) is dict else None
        if type(groups) is not list or any(type(group) is not dict for group in groups):
            return
        rates = [group.get("lr") for group in groups]
        if place >= 0 and len(self._taken) < MAX_TAKEN and _are_plain(rates):
            self._taken[number] = _CopiedGroups(place, groups, rates)

    def loaded(self) -> None:
        """The program loads such a state: a copy is of use."""
        self._taken.clear()

    def step(self, number: int, optimizer: Any, place: int, frame: FrameType) -> None:
        """An optimizer is about to step."""
        rates = [group.get("lr") for group in optimizer.param_groups]
        taken = self._taken.pop(number, None)
        for group, before in () if taken is None else zip(taken.groups, taken.rates, strict=False):
            if taken and group.get("lr") != before and group.get("lr") not in rates:
                self._tell("rate of a copy", taken.place, other=place)
                return
        own = vars(optimizer)
        name = next((name for name in _RATES if type(own.get(name)) in (int, float)), "")
        # A class of the program's own, or of another package, may well read it.
        if name and type(optimizer).__module__.startswith("torch.") and own[name] not in rates:
            if place not in self._set_at:
                self._set_at[place] = self._setter(name, frame)
            self._tell("rate attribute", place, name=name, site=self._set_at[place])

    def _setter(self, name: str, frame: FrameType) -> Site | None:
        """The line in sight that sets this attribute, if there is only one."""
        places, sources = self._recorder.places, self._recorder.sources
        frames = frames_from(frame, places)
        lines = list(setting(name, frames, sources, places, r"\w(?<!^self)\.{}"))
        return Site(lines[0][0], -lines[0][1]) if len(lines) == 1 else None

    def _tell(self, kind: str, place: int, *figures: int, **known: Any) -> None:
        if self.tell is not None:
            self.tell(kind, place, *figures, **known)


def _are_plain(rates: Iterable[Any]) -> bool:
    return all(type(rate) in (int, float) for rate in rates)


def _wrong_decay(groups: _Groups) -> tuple[str, tuple[int, int]]:
    """Whether weights are not decayed, and biases and norms are; how many of each."""
    decays = [group.get("weight_decay") for group in groups]
    if len(groups) < 2 or not _are_plain(decays) or all(decays) or not any(decays):
        return "", (0, 0)
    numbers = {(is_on, is_vector): 0 for is_on in (False, True) for is_vector in (False, True)}
    for group, decay in zip(groups, decays, strict=True):
        for tensor in group["params"]:
            numbers[bool(decay), tensor.dim() < 2] += 1
    weights, vectors = numbers[False, False], numbers[True, True]
    if vectors < 2:
        return "", (0, 0)
    if not numbers[True, False] and weights > 1 and numbers[False, True] < vectors:
        return "decay swapped", (vectors, weights)
    if numbers[True, False] and not weights and not numbers[False, True]:
        return "decay empty", (vectors, numbers[True, False])
    return "", (0, 0)
