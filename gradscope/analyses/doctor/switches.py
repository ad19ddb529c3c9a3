"""Where the recording of history was switched off: the line of a ``with``, of a decorator or of a
call, or the function of torch that did so by itself.

``no_grad``, ``enable_grad`` and ``set_grad_enabled`` all come down to one call of torch, which the
recorder hears; ``inference_mode`` makes none, and is watched where it is entered.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.distributions import Distribution

from gradscope.autograd.isolation import Aside
from gradscope.patched import Original, Patched
from gradscope.recording.names import locals_of
from gradscope.recording.places import Places
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall

MAX_DEPTH = 1_000
"""Blocks that lie in one another; a generator may leave some unfinished."""

_SWITCHING = frozenset(["grad_mode", "_contextlib"])
"""Modules of torch in which the program itself switches."""

_DECORATED = frozenset(["decorate_context", "generator_context"])
"""What stands in the place of a decorated function."""

_MODES = ("grad", "inference_mode")
"""What the name of a mode has in it."""


class Switch(NamedTuple):
    """A place that has switched history off; -1 for none.  ``within`` and ``twin``: the function of
    torch that did so by itself, and its method that does not."""

    place: int = -1
    within: str = ""
    twin: str = ""


class Switches:
    """Where history was switched off, as of now.

    Args:
        sources: tells a decorator's line.
        aside: goes around what is done in the middle of the program.
    """

    def __init__(self, sources: Sources, aside: Callable[[], Aside]) -> None:
        self.current = Switch()
        self._outer: list[Switch] = []
        self._sources = sources
        self._aside = aside
        self._made: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def patches(self, places: Places) -> list[Patched]:
        """What watches who enters inference mode, and leaves it."""

        def make(mode: Any, frame: FrameType) -> None:
            # What a decorator makes anew for each call was made by the program before.
            if not places.is_foreign(frame.f_code):
                self._made[mode] = places.number(frame)

        def enter(mode: Any, frame: FrameType) -> None:
            switch = _switched_by(frame, places, self._sources)
            made = self._made.get(mode, -1)
            is_elsewhere = made >= 0 and places.line(made) != places.line(switch.place)
            self._enter(switch._replace(place=made) if is_elsewhere else switch, mode.mode)

        def leave(_: Any, __: FrameType) -> None:
            self._leave()

        heard = (("__init__", make), ("__enter__", enter), ("__exit__", leave))
        telling = ((name, functools.partial(self._telling, told)) for name, told in heard)
        return [Patched(torch.inference_mode, *one) for one in telling]

    def _telling(self, told: Callable[[Any, FrameType], None], original: Original) -> Original:
        @functools.wraps(original)
        def method(mode: Any, *args: Any, **kwargs: Any) -> Any:
            with self._aside():
                told(mode, sys._getframe(1))
            return original(mode, *args, **kwargs)

        return method

    def note(self, call: TorchCall) -> None:
        """The program, or torch for it, has switched the recording of history on or off."""
        is_off = not (call.args[0] if call.args else True)
        method = _method(call.frame)
        if method == "__exit__":
            self._leave()
        elif method == "__enter__":
            self._enter(_switched_by(call.frame, call.places, self._sources), is_off)
        elif is_off:
            self.current = _switched_by(call.frame, call.places, self._sources)
        else:
            self.current = Switch()

    def _enter(self, switch: Switch, is_off: bool) -> None:
        if len(self._outer) == MAX_DEPTH:
            del self._outer[0]
        self._outer.append(self.current)
        if is_off:
            self.current = switch

    def _leave(self) -> None:
        # What is off again after the block was switched off before it.
        self.current = self._outer.pop() if self._outer else Switch()


@functools.cache
def _stem(file: str) -> str:
    return Path(file).stem


def _method(frame: FrameType | None) -> str:
    """The method of a block that a call is made in: ``__enter__``, ``__exit__``, or none."""
    found = ""
    while frame is not None and _stem(frame.f_code.co_filename) == "grad_mode":
        # `no_grad` makes a `set_grad_enabled`: the outermost is the block that the program has.
        found = frame.f_code.co_name
        frame = frame.f_back
    return found if found in ("__enter__", "__exit__") else ""


def _switched_by(frame: FrameType | None, places: Places, sources: Sources) -> Switch:
    """Who has switched history off, from the frame outwards in which that was done."""
    inner: FrameType | None = None
    while frame is not None and places.is_foreign(frame.f_code):
        code = _decorated(frame)
        if code is not None and not places.is_foreign(code):
            return Switch(places.number_of_line(code, _line_of_decorator(code, sources)))
        inner, frame = frame, frame.f_back
    place = -1 if frame is None else places.number(frame)
    if inner is None or _stem(inner.f_code.co_filename) in _SWITCHING:
        return Switch(place)
    return Switch(place, *_function_of_torch(inner))


def _decorated(frame: FrameType) -> CodeType | None:
    """The code of the function that torch's own decorator has made this frame for."""
    if frame.f_code.co_name not in _DECORATED:
        return None
    function = locals_of(frame).get("func")
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code if isinstance(code, CodeType) else None


def _line_of_decorator(code: CodeType, sources: Sources) -> int:
    """The line of the decorator that names a mode; that of ``def`` where none does."""
    lines = sources.decorators(code)
    named = (line for line, text in lines if any(mode in text for mode in _MODES))
    return next(named, sources.lines_of(code)[0])


def _function_of_torch(frame: FrameType) -> tuple[str, str]:
    """The function of torch that runs in a frame, and its twin that keeps history."""
    owner = locals_of(frame).get("self")
    name = frame.f_code.co_name
    if name != "sample" or not isinstance(owner, Distribution):
        return frame.f_code.co_qualname, ""
    return f"{type(owner).__name__}.sample", "rsample" if owner.has_rsample else ""
