"""Modules with a ``requires_grad`` of their own, which freezes nothing: only a tensor has one that
counts, and of a module it is an attribute like any other.

A class may know such an attribute and act on it, so only those are told whose class does not.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import CodeType, FrameType
from typing import NamedTuple

from torch import nn

from gradscope.analyses.training.stores import in_sight, methods, sites_of, targets
from gradscope.analyses.training.tracked_parameters import TrackedParameters
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.wrappers import parameters_in

MAX_KNOWN = 1_000
"""Modules whose line was looked for."""

_FLAG = "requires_grad"


class KnownFlag(NamedTuple):
    """Such a module: its path, how many of its parameters get a gradient and are in an optimizer,
    and the line that set the attribute."""

    name: str
    parameters: int
    site: Site


class FlaggedModules:
    """All modules that were to be frozen so and learn all the same, each once."""

    def __init__(self, recorder: Recorder, learners: TrackedParameters) -> None:
        self.known: dict[str, KnownFlag] = {}
        self._recorder = recorder
        self._learners = learners

    def look(self, frame: FrameType) -> None:
        """A frame makes a backward call: among all modules that have run so far."""
        for root in self._recorder.modules.roots:
            owner = root.module()
            for path, module in [] if owner is None else nn.Module.named_modules(owner):
                name = path or type(module).__name__
                if _FLAG not in vars(module) or name in self.known or not _is_flagged(module):
                    continue
                learns = [one for one in parameters_in(module) if self._learns(one)]
                if learns and len(self.known) < MAX_KNOWN:
                    frames = frames_from(frame, self._recorder.places)
                    site = self._setting(path.rpartition(".")[2], frames)
                    if site is not None:
                        self.known[name] = KnownFlag(name, len(learns), site)

    def _learns(self, parameter: nn.Parameter) -> bool:
        known = self._learners
        is_held = known.optimizers.is_held(parameter) and known.is_reached(parameter)
        return parameter.requires_grad and is_held

    def _setting(self, name: str, frames: Iterable[FrameType]) -> Site | None:
        """The line that sets it: of what has this name, or else the only one."""
        lines: dict[tuple[str, int], tuple[Site, bool]] = {}
        for site, owner in self._lines(frames):
            line = self._recorder.sources.origin(site).line
            whole = Site(site.code, -line), owner.rpartition(".")[2] == name
            lines.setdefault((site.code.co_filename, line), whole)
        named = [site for site, is_named in lines.values() if is_named]
        every = named or [site for site, _ in lines.values()]
        return every[0] if len(every) == 1 or named else None

    def _lines(self, frames: Iterable[FrameType]) -> Iterator[tuple[Site, str]]:
        """The places that set such an attribute to False, and of what."""
        codes = [code for code in in_sight(frames) if _FLAG in code.co_names]
        for site in sites_of(filter(self._recorder.places.is_own, codes)):
            origin = self._recorder.sources.origin(site)
            for target in targets(origin.variable) if origin.expression == "False" else ():
                owner, _, attribute = target.rpartition(".")
                if attribute == _FLAG:
                    yield site, owner


def _is_flagged(module: nn.Module) -> bool:
    kind = type(module)
    if vars(module)[_FLAG] is not False or inspect.getattr_static(kind, _FLAG, None) is not None:
        return False
    return not any(_is_known_to(code) for one in kind.__mro__ for code in methods(one))


def _is_known_to(code: CodeType) -> bool:
    """Whether a method reads or sets such an attribute of its own object."""
    found = list(dis.get_instructions(code)) if _FLAG in code.co_names else []
    itself = code.co_varnames[:1]
    return any((one.argval,) == itself and after.argval == _FLAG for one, after in pairwise(found))
