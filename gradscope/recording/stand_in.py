"""Functions of torch, and python's own of warnings, with ours in their place while a program is
recorded.

Some are private.  Two of torch's are used where what it offers instead costs every call several
times as much: global hooks of modules, for which torch goes a longer way around each, and the block
in which it takes a mode off, made of a generator.

While a recorder is active its frames stand between the program and torch, so a warning that torch
issues would name our file, and python would show it once instead of once a place: warnings keep the
place where plain python would report them.  Knows nothing of what is remembered.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _device

from gradscope.autograd.isolation import pop_mode, push_mode
from gradscope.autograd.nodes import IS_TOLD
from gradscope.patched import Original, Patched, by_way_of
from gradscope.target.cleaning import stack_as_python

_DYNAMO = "torch._dynamo"


def module_calls(around: Callable[[Original], Original]) -> Patched:
    """For the method that all calls of modules go through."""
    name = "unpatched_nn_module_call_impl"
    taken = ((f"{_DYNAMO}.utils", name), (f"{_DYNAMO}.variables.nn_module", name))
    return Patched(nn.Module, "_call_impl", lambda one: functools.wraps(one)(around(one)), taken)


def mode_popping() -> Patched:
    """For the block in which a function of torch that is written in python calls a mode."""
    name = "_pop_mode_temporarily"
    taken = ((f"{_DYNAMO}.polyfills.torch_c_nn", name),)
    return Patched(torch.overrides, name, lambda _: _ModePopped, taken)


def default_devices(own: TorchFunctionMode) -> Patched:
    """For what ``set_default_device`` asks to find the bottom of the modes, below which it goes.

    There lies ``own``, unknown to the program.  What is put below it comes off the top in its place
    at the end of a ``with torch.device(...)`` in which it was set.
    """

    def above_own(original: Original) -> int:
        height = int(original())
        return height - (height > 0 and torch._C._get_function_stack_at(0) is own)

    return by_way_of(_device, "_len_torch_function_stack", above_own)


def saved_tensor_hooks() -> tuple[Patched, ...]:
    """For what puts saved-tensor hooks up and takes them away: none where torch itself tells that a
    tensor was packed."""
    if IS_TOLD:
        return ()
    from gradscope.autograd import packing

    def after(note: Callable[[], None]) -> Callable[..., Any]:
        def called(original: Original, *args: Any) -> Any:
            out = original(*args)
            note()
            return out

        return called

    owner = torch._C._autograd
    return (
        by_way_of(owner, "_push_saved_tensors_default_hooks", after(packing.push)),
        by_way_of(owner, "_pop_saved_tensors_default_hooks", after(packing.pop)),
    )


class _ModePopped:
    """Takes the uppermost mode off while the block runs, as torch's generator of this name does."""

    __slots__ = ("_mode",)

    def __enter__(self) -> TorchFunctionMode:
        mode = self._mode = pop_mode()
        return mode

    def __exit__(self, *_: object) -> None:
        push_mode(self._mode)


_HOOK = "_showwarnmsg"
"""What python calls with every warning that passed the filters.  The documented ``showwarning`` is
below it, and ``catch_warnings(record=True)`` goes around that one."""

_BEYOND = ("<sys>", 0) if sys.version_info >= (3, 13) else ("sys", 1)
"""What a warning names that lies further out than the program."""


_thread = threading.local()


def _show(message: Any) -> None:
    place = None
    if not getattr(_thread, "is_showing_again", False):
        # This runs in the middle of the program, which must get its warning.
        with contextlib.suppress(Exception):
            place = _place_of(message, sys._getframe(1))
    if place is None:
        warning_places.original(message)
        return
    # What is shown again comes by here once more.
    _thread.is_showing_again = True
    try:
        _show_again(message, *place)
    finally:
        _thread.is_showing_again = False


def _show_again(message: Any, frame: FrameType | None, line: int) -> None:
    # Filters and "once a place" apply again, now with the right place.
    shown = str(message.message), message.category
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == message.filename:
            registry = vars(module).get("__warningregistry__", {})
            # Of this warning alone: others of that module have been shown once, and stay so.
            registry.pop((*shown, message.lineno), None)
            registry.pop((*shown, 0), None)
    # Beyond the outermost frame of a program python names itself.
    found: Any = vars(sys) if frame is None else frame.f_globals
    warnings.warn_explicit(
        message.message,
        message.category,
        _BEYOND[0] if frame is None else frame.f_code.co_filename,
        line,
        module=found.get("__name__"),
        registry=found.setdefault("__warningregistry__", {}),
        source=message.source,  # which tracemalloc uses to tell where it was allocated
    )


# Not documented: where a python has no such function, warnings name our lines.
warning_places = Patched(warnings, _HOOK, lambda _: _show)
"""Stands in the way of warnings while it is started, by whoever has frames of ours in the program's
way."""


def _place_of(message: Any, warner: FrameType) -> tuple[FrameType | None, int] | None:
    """Frame and line that plain python would have named; None where that is what it did.

    Without a frame where it would have named none of the program's.

    A warning names the frame that lies so and so many levels out from the one that warned.  Frames
    of ours were counted among them.
    """
    frames = []
    frame: FrameType | None = warner
    while frame is not None:
        frames.append(frame)
        if (frame.f_code.co_filename, frame.f_lineno) == (message.filename, message.lineno):
            break
        frame = frame.f_back
    if frame is None:
        return None
    stack = stack_as_python(warner)
    level = len(frames) - 1
    if level >= len(stack):
        return None, _BEYOND[1]
    return None if stack[level][0] is frame else stack[level]
