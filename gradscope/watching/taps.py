"""Functions of torch that are called by way of ours, for as long as it is wanted.

Knows nothing of what is listened to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from gradscope.autograd.isolation import Aside, CompilerOff
from gradscope.handlers import HandlersWait
from gradscope.target import clean


class Tap:
    """A function of a module or class that is called by way of ``around(original, ...)``.

    What the original raises has the traceback that it would have; torch.compile traces none of it.
    """

    def __init__(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        self.original = getattr(owner, name)
        self._owner, self._name = owner, name

        def tapped(*args: Any, **kwargs: Any) -> Any:
            try:
                return around(self.original, *args, **kwargs)
            except BaseException as error:
                clean(error)
                raise

        tapped.__name__ = name
        vars(tapped).update(tap=self, _torchdynamo_disable=True)
        self._tapped = tapped
        setattr(owner, name, tapped)

    def remove(self) -> None:
        """Leave the function as it was; blocks may end in another order than they began in."""
        above, function = None, getattr(self._owner, self._name)
        while function is not self._tapped:
            above = getattr(function, "tap", None)
            if above is None:
                # Whoever has wrapped it since calls ours, which then only passes the call on.
                return
            function = above.original
        if above is None:
            setattr(self._owner, self._name, self.original)
        else:
            above.original = self.original


def untraced(hook: Callable[..., None]) -> Callable[..., None]:
    """The same hook, which torch.compile does not make a part of the step that it compiles."""
    vars(hook)["_torchdynamo_disable"] = True
    return hook


_one_at_a_time = threading.RLock()
if hasattr(os, "register_at_fork"):
    # Who holds it may not be in the child.
    os.register_at_fork(before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release)
    os.register_at_fork(after_in_child=_one_at_a_time.release)


class Unseen(Aside):
    """Around what a watch does in the middle of the program: unnoticed, raising nothing, in one
    thread at a time; torch.compile traces none of it."""

    def __enter__(self) -> None:
        self._handlers = HandlersWait()
        self._handlers.__enter__()
        _one_at_a_time.acquire()
        self._compiler = CompilerOff()
        self._compiler.__enter__()
        super().__enter__()

    def __exit__(self, *what: Any) -> bool:
        try:
            return super().__exit__(*what)
        finally:
            self._compiler.__exit__()
            _one_at_a_time.release()
            self._handlers.__exit__()
