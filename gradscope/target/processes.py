"""Whether a program works in other processes than the one it was started in."""

from __future__ import annotations

import os
import sys

try:
    import resource
except ImportError:  # Windows, which has no fork either
    resource = None  # type: ignore[assignment]


class OtherProcesses:
    """What has happened since this object was made."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._used = _used_by_children()

    @property
    def is_this_one(self) -> bool:
        """Whether this is a forked child of the process that the program was started in."""
        return os.getpid() != self._process

    @property
    def have_run(self) -> bool:
        """Whether children are running, or have run to their end."""
        # Not imported here: who has started no process with it need not pay for it.
        module = sys.modules.get("multiprocessing")
        running = module is not None and bool(module.active_children())
        return running or _used_by_children() > self._used


def _used_by_children() -> int:
    """Pages that children which have ended had mapped: no process runs without any."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
