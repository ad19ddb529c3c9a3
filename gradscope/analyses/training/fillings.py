"""What fills a model before it runs, and comes to nothing: a state that has no key in common with
the module, or is the module's own; numbers that were loaded and are then drawn; a function for all
parts of a module that calls initialisers, and fills none.
"""

from __future__ import annotations

import dis
import functools
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from gradscope.analyses.training.restored import is_initialiser
from gradscope.analyses.training.tracked_parameters import TrackedParameters
from gradscope.autograd.tensors import TensorTable, storage_of
from gradscope.recording.compiled import with_inner
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.wrappers import parameters_in

MAX_LOADED = 20_000
"""Weights that were loaded, and are remembered until they are used."""

MAX_PLACES = 1_000
"""Calls that load or apply, and that are remembered."""

_WATCHED = (("load_state_dict", "state_dict", "_load"), ("apply", "fn", "_apply"))
"""Methods of a module, the name of their first argument, and who is told of a call."""

_ITSELF = re.compile(r"(?P<module>.+)\.load_state_dict\((?P=module)\.state_dict\(\)")
"""A module that is given its own state."""

_FILLS = frozenset(
    ["normal_", "uniform_", "fill_", "zero_", "copy_"]
    + [name for name in vars(nn.init) if name.endswith("_") and not name.startswith("_")]
)


@dataclass
class KnownLoad:
    """A call that has loaded so many weights of a module, and the frames around it, by id; how many
    of them were drawn since, before they were used, and the line that called for it."""

    place: int
    around: dict[int, CodeType]
    weights: int = 0
    drawn: int = 0
    drawn_at: int = -1


class Fillings:
    """All of these.

    Args:
        recorder: knows the places.
        learners: know what was used.
        found: told of a state that matches nothing.

    ``own`` are the places that have loaded a module's own tensors before anything used them, or
    more than once, with how many; ``idle`` are, by the function, the places that have applied one
    in vain, with the number of parts and the classes of those with weights.
    """

    def __init__(
        self, recorder: Recorder, learners: TrackedParameters, found: Callable[..., None]
    ) -> None:
        self.loads: list[KnownLoad] = []
        self.own: dict[int, int] = {}
        self.idle: dict[CodeType, tuple[int, int, str]] = {}
        self._recorder = recorder
        self._learners = learners
        self._found = found
        self._loaded: TensorTable[KnownLoad] = TensorTable(MAX_LOADED)
        self._writes = 0
        self._met: set[int] = set()
        self._worked: set[CodeType] = set()
        self._originals: dict[str, Any] = {}

    def start(self) -> None:
        """Learn of states that are loaded, and of functions that are applied to all parts."""
        for name, given, told in _WATCHED:
            original = self._originals[name] = vars(nn.Module)[name]
            setattr(nn.Module, name, self._telling(original, given, getattr(self, told)))

    def stop(self) -> None:
        """Leave the class as it was."""
        for name, original in self._originals.items():
            setattr(nn.Module, name, original)

    def _telling(self, original: Callable[..., Any], given: str, told: Callable[..., None]) -> Any:
        @functools.wraps(original)
        def method(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            frame, writes = sys._getframe(1), self._writes
            result = original(module, *args, **kwargs)
            # Torch itself calls `apply` for each part of a module.
            if not self._recorder.places.is_foreign(frame.f_code):
                with self._recorder.aside():
                    told(module, frame, args[0] if args else kwargs[given], result, writes)
            return result

        return method

    def _load(self, module: nn.Module, frame: FrameType, state: Any, result: Any, _: int) -> None:
        """A state was loaded into a module."""
        place, site = self._recorder.places.number(frame), Site(frame.f_code, frame.f_lasti)
        missing, unexpected = getattr(result, "missing_keys", ()), result.unexpected_keys
        if missing and 0 < len(unexpected) == len(state):
            # Who takes the result may look at what is missing.
            if _is_unread(frame):
                names = f"`{unexpected[0]}`, where the module has `{missing[0]}`"
                self._found("load matched nothing", place, len(state), name=names)
            return
        text = self._recorder.sources.origin(site).expression
        itself = _ITSELF.match(text)
        is_used = any(self._learners.used(one) >= 0 for one in islice(parameters_in(module), 1))
        if is_used and not itself:
            # What has been trained since was to be put back.
            self.own.pop(place, None)
            return
        if not issubclass(type(state), dict) or len(self.loads) >= MAX_PLACES:
            return
        own = dict(nn.Module.named_parameters(module, remove_duplicate=False))
        pairs = [(own[name], one) for name, one in dict.items(state) if name in own]
        is_own = bool(pairs) and "assign" not in text and all(_are_one(*pair) for pair in pairs)
        if is_own and itself:
            # Once it may be meant to do nothing; who comes back wants something from it.
            if place in self._met:
                self.own[place] = len(pairs)
            self._met.add(place)
        elif not is_used:
            # `target.load_state_dict(online.state_dict())` of one module is told as two names.
            if is_own and "state_dict()" not in text:
                self.own[place] = len(pairs)
            around = {id(one): one.f_code for one in frames_from(frame, self._recorder.places)}
            weights = [one for one, _ in pairs if one.dim() > 1 and self._learners.used(one) < 0]
            self.loads.append(KnownLoad(place, around, len(weights)))
            for one in weights:
                self._loaded[one] = self.loads[-1]

    def note_written(self, call: TorchCall, leaves: Iterable[torch.Tensor]) -> None:
        """A call has written to a tensor, or to the memory of these leaves."""
        self._writes += 1
        for leaf in (*call.operands[:1], *leaves) if is_initialiser(call) else ():
            load = self._loaded.get(leaf)
            if load is not None and self._learners.used(leaf) < 0:
                self._loaded.forget(leaf)
                load.drawn += 1
                # The innermost function around both has come to this line since.
                frames = frames_from(call.user, self._recorder.places)
                both = (one for one in frames if load.around.get(id(one)) is one.f_code)
                load.drawn_at = next(map(self._recorder.places.number, both), -1)

    def _apply(
        self, module: nn.Module, frame: FrameType, function: Any, _: Any, writes: int
    ) -> None:
        """A function was applied to all parts of a module."""
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if not isinstance(code, CodeType) or len(self._worked) + len(self.idle) >= MAX_PLACES:
            return
        if writes != self._writes:
            self._worked.add(code)
            self.idle.pop(code, None)
        elif code not in self._worked and _only_fills(code):
            parts = list(nn.Module.modules(module))
            kinds = [type(one).__name__ for one in parts if _has_weights(one)]
            if kinds:
                place = self._recorder.places.number(frame)
                self.idle[code] = place, len(parts), " or ".join(dict.fromkeys(kinds))


def _are_one(one: torch.Tensor, other: Any) -> bool:
    return isinstance(other, torch.Tensor) and 0 != storage_of(one) == storage_of(other)


def _is_unread(frame: FrameType) -> bool:
    """Whether a frame drops what the call under way returns, or gives it to a name that it never
    reads."""
    done = list(dis.get_instructions(frame.f_code))
    after = next((one for one in done if one.offset > frame.f_lasti), None)
    if after is None or after.opname != "STORE_FAST":
        return after is not None and after.opname == "POP_TOP"
    return not any(
        one.opname.startswith("LOAD") and after.argval in str(one.argval) for one in done
    )


def _has_weights(module: nn.Module) -> bool:
    held = [one for one in module._parameters.values() if type(one) is nn.Parameter]
    return any(one.dim() > 1 for one in held)


def _only_fills(code: CodeType) -> bool:
    """Whether a function names initialisers, and sets no attribute but the data of a tensor."""
    codes = list(with_inner([code]))
    done = (one for inner in codes for one in dis.get_instructions(inner))
    sets = {one.argval for one in done if one.opname == "STORE_ATTR"}
    return sets <= {"data"} and any(not _FILLS.isdisjoint(inner.co_names) for inner in codes)
