"""Which backward calls are those of other threads, while one is watched.

Torch takes a mark from the thread that makes a call into all threads that work for that call, those
of devices as well.  Knows nothing of what is watched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

_C: Any = torch._C

_MARK = "gradscope.watching"
"""Of a call: the numbers of the watches for which it is one of another thread."""


def in_pass() -> bool:
    """Whether this runs inside a backward call, such as in a hook or a backward function."""
    return bool(_C._current_graph_task_id() != -1)


def _mark() -> frozenset[int]:
    return _C._get_obj_in_tls(_MARK) if _C._is_key_in_tls(_MARK) else frozenset()


class ThreadCalls:
    """The backward calls that the program makes; of several threads one is watched at a time.

    Args:
        number: of the watch.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._watched = threading.Lock()
        self._callers: set[int] = set()

    def begin(self) -> bool:
        """Whether the call that begins is to be watched, until :meth:`end`."""
        self._callers.add(threading.get_ident())
        return self._watched.acquire(blocking=False)

    def end(self) -> None:
        """The watched call is over."""
        self._watched.release()

    def beside(self, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a call that is not the watched one."""
        before = _mark()
        _C._stash_obj_in_tls(_MARK, before | {self._number})
        try:
            return make(*args, **kwargs)
        finally:
            _C._stash_obj_in_tls(_MARK, before)

    def is_of_another(self) -> bool:
        """Whether the call that this runs in is that of another thread."""
        return self._number in _mark()

    @property
    def are_of_many(self) -> bool:
        """Whether several threads have made calls, so that what changes while one runs may come
        from another."""
        return len(self._callers) > 1
