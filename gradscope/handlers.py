"""What python runs wherever it happens to be, told to wait while code of ours runs: the program's
signal handlers, with what they raise, and the garbage collector.

Knows nothing of torch.
"""

from __future__ import annotations

import functools
import gc
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

_signals: Any = importlib.import_module("_signal")
"""What ``signal`` is made of: that makes an enum of each handler, which costs ten times more."""

_NUMBERS = tuple(
    number
    for number in sorted(map(int, signal.valid_signals()))
    # No handler is given these two, and hardly any those for real time.
    if number < getattr(signal, "SIGRTMIN", 64)
    and number not in (getattr(signal, "SIGKILL", 0), getattr(signal, "SIGSTOP", 0))
)


class HandlersWait:
    """While the ``with`` block runs, the program's signal handlers wait; they are called at its
    end, each once.

    Python runs a handler wherever it happens to be, and what the handler raises would leave us
    halfway: with gradients switched off for the rest of a program that goes on after a timeout.
    For the main thread only, as all handlers.

    Args:
        interrupts: whether Ctrl-C waits as well, also where the program has no handler for it.
        briefly: for a block that comes many times a step: the handlers that the last block not so
            brief has found wait, and are not looked for again.
    """

    _is_waiting = False
    _found: tuple[int, ...] = ()
    """Signals that the program has a handler of its own for."""

    def __init__(self, interrupts: bool = False, briefly: bool = False) -> None:
        self._interrupts, self._briefly = interrupts, briefly
        self._handlers: dict[int, Any] = {}
        self._came: list[int] = []

    def __enter__(self) -> None:
        known = HandlersWait._found if self._briefly else _NUMBERS
        if self._briefly and self._interrupts:
            known = (signal.SIGINT, *known)
        if not known:
            return
        if HandlersWait._is_waiting or threading.get_ident() != threading.main_thread().ident:
            return
        handlers = {one: _signals.getsignal(one) for one in known}
        # Else it is ignored, left to the system, or set by C code.
        self._handlers = {one: handler for one, handler in handlers.items() if callable(handler)}
        usual = _signals.default_int_handler
        HandlersWait._found = tuple(
            one for one, handler in self._handlers.items() if handler is not usual
        )
        if not self._interrupts:
            self._handlers.pop(signal.SIGINT, None)
        # In this frame: python looks for signals where a function begins.
        try:
            HandlersWait._is_waiting = bool(self._handlers)
            for number in self._handlers:
                _signals.signal(number, self._note)
        except BaseException:
            self._put_back()
            raise

    def __exit__(self, *_: object) -> None:
        if not self._handlers:
            return
        try:
            self._put_back()
        # A handler that is back may be called while others are not.
        except BaseException:
            self._put_back()
            raise
        self._came = list(dict.fromkeys(self._came))
        self._call_those_that_wait()

    def _call_those_that_wait(self) -> None:
        # Not by raising the signal again: asyncio, which is told of each by a file, would hear of
        # it twice.  What one raises leaves from here, when all were called.
        if self._came:
            number = self._came.pop(0)
            try:
                self._handlers[number](number, sys._getframe())
            finally:
                self._call_those_that_wait()

    def _put_back(self) -> None:
        for number, handler in self._handlers.items():
            _signals.signal(number, handler)
        HandlersWait._is_waiting = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._came.append(number)


def let_pass(error: Exception) -> None:
    """Give the program what its signal handlers raise while our code runs.

    Python runs handlers wherever it happens to be, and the program waits for what they raise, as
    for a timeout.

    Raises:
        Exception: that very exception, where a signal handler of the program has raised it.
    """
    # A frame tells the code that it runs and not the function, so handlers are known by code.
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    if any(frame.f_code in handlers for frame, _ in walk_tb(error.__traceback__)):
        raise error


def _code_of(handler: Any) -> CodeType | None:
    # Python takes anything that can be called: a partial, a method, an object with `__call__`.
    while isinstance(handler, functools.partial):
        handler = handler.func
    code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def collector_paused() -> Iterator[None]:
    """For blocks of ours that make many objects; of the program's code they run one backward call
    at the most.

    Python would search all objects for garbage again and again, which takes longer than making
    them; after torch has been imported, a single search takes a tenth of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def without_collector(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that pauses the garbage collector while ``function`` runs.

    Not :func:`collector_paused` as a decorator: that would run it in a function of contextlib's,
    which torch.compile traces where it meets us in the middle of a compiled program.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with collector_paused():
            return function(*args, **kwargs)

    return run
