"""A function of others, with ours in its place for a while.

Knows nothing of torch, or of what ours does.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

Original = Callable[..., Any]
"""What stood there."""


_standing: list[Patched] = []
"""Those that have put theirs there."""


class Patched:
    """Puts a function in the place of another, and takes it off again; several on one function may
    go in any order.

    Args:
        owner, name: the module or class that has the function, and its name there.
        around: makes of what stands there what is to stand there.
        taken: modules that take what is there when they are imported, with their names of it.
    """

    def __init__(
        self,
        owner: Any,
        name: str,
        around: Callable[[Any], Any],
        taken: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._owner, self._name, self._around, self._taken = owner, name, around, tuple(taken)
        self.original: Any = None
        """What stands below, also afterwards: somebody may have kept ours.  None before the start,
        and where another version has no such function."""
        self._ours: Any = None
        self._users = 0
        self._is_inherited = False

    @property
    def is_started(self) -> bool:
        """Whether ours was put there, and not taken off."""
        return self._ours is not None

    def start(self) -> None:
        """Put ours in the place of the other; it is there until as many have stopped as started."""
        self._users += 1
        # Not asked of the count: an interrupt may come between the two.
        if self.is_started:
            return
        # Of a class as it stands there: a classmethod is not to be bound.
        original = self.original = inspect.getattr_static(self._owner, self._name, None)
        self._is_inherited = self._name not in vars(self._owner)
        if original is not None:
            self._ours = self._around(original)
            if isinstance(self._owner, ModuleType) and isinstance(self._ours, FunctionType):
                # Pickle looks for it there, and where torch defines it may stand another.
                self._ours.__module__ = self._owner.__name__
            _standing.append(self)
            setattr(self._owner, self._name, self._ours)

    def stop(self) -> None:
        """Put the other back; where the program has put one of its own there, that stays."""
        self._users = max(self._users - 1, 0)
        if self._users:
            return
        taken = ((sys.modules.get(module), name) for module, name in self._taken)
        for owner, name in ((self._owner, self._name), *taken):
            if self._ours is not None and vars(owner or self).get(name) is self._ours:
                if self._is_inherited:
                    delattr(owner, name)
                else:
                    setattr(owner, name, self.original)
        # One of ours that came later puts back what it has found, which is not to be this.
        for above in _standing if self._ours is not None else ():
            if above.original is self._ours:
                above.original = self.original
        _standing[:] = [one for one in _standing if one is not self]
        self._ours = None

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def by_way_of(owner: Any, name: str, call: Callable[..., Any]) -> Patched:
    """What has a function called as ``call(original, ...)`` while it is started."""

    def around(original: Original) -> Original:
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            return call(patch.original, *args, **kwargs)

        return called

    patch = Patched(owner, name, around)
    return patch
