"""Tracebacks that the program itself prints while it runs, and those of its threads.

``traceback.print_exc``, ``logging.exception`` and the like all go through one class of the standard
library, a thread's exceptions through one hook.  Both are watched while the program runs, so that
they show what python would have shown.
"""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from gradscope.target.cleaning import clean, cleaned


@contextmanager
def clean_printing() -> Iterator[None]:
    """While the block runs, tracebacks that are printed do not show us."""
    kind: Any = traceback.TracebackException
    # The class, because a program may have imported the functions by name, and keeps those.
    original, hook = kind.__init__, threading.excepthook

    @functools.wraps(original)
    def init(
        self: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, *args: Any, **kwargs: Any
    ) -> None:
        original(self, exc_type, exc_value, _as_python(exc_traceback), *args, **kwargs)

    @functools.wraps(hook)
    def excepthook(args: Any) -> None:
        if args.exc_value is not None:
            clean(args.exc_value)
            # They cannot be changed, and the traceback that they hold is the one from before.
            args = threading.ExceptHookArgs(
                (args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread)
            )
        hook(args)

    kind.__init__, threading.excepthook = init, excepthook
    try:
        yield
    finally:
        kind.__init__ = original
        # The program may have set a hook of its own since.
        if threading.excepthook is excepthook:
            threading.excepthook = hook


def _as_python(shown: TracebackType | None) -> TracebackType | None:
    try:
        return cleaned(shown)
    except Exception:  # this runs in the middle of the program, which must get its traceback
        return shown
