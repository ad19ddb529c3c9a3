"""Modules with a ``requires_grad`` of their own, which freezes nothing: only a tensor has one that
counts, and of a module it is an attribute like any other.  So is ``trainable``, as Keras has it.

A class may know such an attribute and act on it, so only those are told whose class does not; and
so may any function, where the attribute is none that a tensor has.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import CodeType, FrameType
from typing import NamedTuple

import torch
from torch import nn

from gradscope.analyses.training.stores import in_sight, methods, sites_of, targets
from gradscope.analyses.training.tracked_parameters import TrackedParameters
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.wrappers import parameters_in

MAX_KNOWN = 1_000
"""Modules whose line was looked for."""

_FLAGS = ("requires_grad", "trainable")


class KnownFlag(NamedTuple):
    """Such an attribute, behind the path of its module; how many parameters of that get a gradient
    and are in an optimizer, and the line that set it."""

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
        for owner in self._recorder.modules.living_roots():
            for path, module in nn.Module.named_modules(owner):
                for flag in _FLAGS:
                    name = f"{path or type(module).__name__}.{flag}"
                    if flag in vars(module) and name not in self.known and _is_odd(module, flag):
                        self._note(name, module, frames_from(frame, self._recorder.places))

    def _note(self, name: str, module: nn.Module, frames: Iterable[FrameType]) -> None:
        learns = [one for one in parameters_in(module) if self._learns(one)]
        if learns and len(self.known) < MAX_KNOWN:
            site = self._setting(name, in_sight(frames))
            if site is not None:
                self.known[name] = KnownFlag(name, len(learns), site)

    def _learns(self, parameter: nn.Parameter) -> bool:
        known = self._learners
        is_held = known.optimizers.is_held(parameter) and known.is_reached(parameter)
        return parameter.requires_grad and is_held

    def _setting(self, name: str, codes: Iterable[CodeType]) -> Site | None:
        """The line that sets it: of what has this name, or else the only one."""
        path, _, flag = name.rpartition(".")
        lines: dict[tuple[str, int], tuple[Site, bool]] = {}
        for site, owner in self._lines(codes, flag):
            line = self._recorder.sources.origin(site).line
            is_named = owner.rpartition(".")[2] == path.rpartition(".")[2]
            lines.setdefault((site.code.co_filename, line), (Site(site.code, -line), is_named))
        named = [site for site, is_named in lines.values() if is_named]
        every = named or [site for site, _ in lines.values()]
        return every[0] if len(every) == 1 or named else None

    def _lines(self, codes: Iterable[CodeType], flag: str) -> Iterator[tuple[Site, str]]:
        """The places that set such an attribute, and of what; none where one of these functions
        asks for it, and that is not what a tensor is asked for."""
        own = [code for code in codes if self._recorder.places.is_own(code)]
        if not hasattr(torch.Tensor, flag) and any(_asks(code, flag) for code in own):
            return
        for site in sites_of(code for code in own if flag in code.co_names):
            origin = self._recorder.sources.origin(site)
            for target in targets(origin.variable):
                owner, _, attribute = target.rpartition(".")
                if attribute == flag and (origin.expression == "False" or flag != _FLAGS[0]):
                    yield site, owner


def _asks(code: CodeType, flag: str) -> bool:
    """Whether a function asks an object for it, be it by `getattr`."""
    done = dis.get_instructions(code) if flag in code.co_names else ()
    return flag in code.co_consts or any(
        one.argval == flag and one.opname in ("LOAD_ATTR", "LOAD_METHOD") for one in done
    )


def _is_odd(module: nn.Module, flag: str) -> bool:
    """Whether a module has it as False, and its class does not know it."""
    kind = type(module)
    if vars(module)[flag] is not False or inspect.getattr_static(kind, flag, None) is not None:
        return False
    return not any(_knows(code, flag) for one in kind.__mro__ for code in methods(one))


def _knows(code: CodeType, flag: str) -> bool:
    """Whether a method reads or sets such an attribute of its own object."""
    found = list(dis.get_instructions(code)) if flag in code.co_names else []
    itself = code.co_varnames[:1]
    return any((one.argval,) == itself and after.argval == flag for one, after in pairwise(found))
