"""Where the recording of history was switched off: the line of a ``with`` or of a call, or the
function of torch that did so by itself.

``no_grad``, ``enable_grad`` and ``set_grad_enabled`` all come down to one call of torch, which the
recorder hears; ``inference_mode`` makes none, and of what it cuts the call itself is told.
"""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from torch.distributions import Distribution

from gradscope.recording.names import locals_of
from gradscope.recording.places import Places
from gradscope.recording.torch_call import TorchCall

MAX_DEPTH = 1_000
"""Blocks that lie in one another; a generator may leave some unfinished."""


class Switch(NamedTuple):
    """A place that has switched history off; -1 for none.  ``within`` and ``twin``: the function of
    torch that did so by itself, and its method that does not."""

    place: int = -1
    within: str = ""
    twin: str = ""


class Switches:
    """Where history was switched off, as of now."""

    def __init__(self) -> None:
        self.current = Switch()
        self._outer: list[Switch] = []

    def note(self, call: TorchCall) -> None:
        """The program, or torch for it, has switched the recording of history on or off."""
        is_off = not (call.args[0] if call.args else True)
        method = _method(call.frame)
        if method == "__exit__":
            self._leave()
        elif method == "__enter__":
            self._enter(_switched_by(call.frame, call.places), is_off)
        elif is_off:
            self.current = _switched_by(call.frame, call.places)
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


def _switched_by(frame: FrameType | None, places: Places) -> Switch:
    """Who has switched history off, from the frame outwards in which that was done."""
    inner: FrameType | None = None
    is_decorated = False
    while frame is not None and places.is_foreign(frame.f_code):
        is_decorated |= _is_around_own(frame, places)
        inner, frame = frame, frame.f_back
    place = -1 if frame is None else places.number(frame)
    if is_decorated or inner is None or _stem(inner.f_code.co_filename) == "grad_mode":
        return Switch(place)
    return Switch(place, *_function_of_torch(inner))


def _is_around_own(frame: FrameType, places: Places) -> bool:
    """Whether it is torch's decorator, in the place of a function of the program's."""
    if _stem(frame.f_code.co_filename) != "_contextlib":
        return False
    function = locals_of(frame).get("func")
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return isinstance(code, CodeType) and not places.is_foreign(code)


def _function_of_torch(frame: FrameType) -> tuple[str, str]:
    """The function of torch that runs in a frame, and its twin that keeps history."""
    owner = locals_of(frame).get("self")
    name = frame.f_code.co_name
    if name != "sample" or not isinstance(owner, Distribution):
        return frame.f_code.co_qualname, ""
    return f"{type(owner).__name__}.sample", "rsample" if owner.has_rsample else ""
