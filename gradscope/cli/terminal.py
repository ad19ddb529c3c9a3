"""What the terminal, or whatever stdout is instead, can take."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator

PIPED_WIDTH = 100
"""Columns of a tree that goes into a pipe or a file, unless COLUMNS says otherwise."""


WIDEST = 10_000
"""Columns beyond which nobody reads, and lines fill the memory."""


def width(to_stdout: bool = True) -> int:
    """Columns for the tree: COLUMNS, else the terminal's, else :data:`PIPED_WIDTH`, as in files."""
    known = is_terminal() or os.environ.get("COLUMNS", "").isdigit()
    if not (to_stdout and known):
        return PIPED_WIDTH
    return min(shutil.get_terminal_size((PIPED_WIDTH, 40)).columns, WIDEST)


def chosen_width(columns: int | None, to_stdout: bool = True) -> int:
    """The columns that were asked for, else those there are."""
    return min(columns, WIDEST) if columns else width(to_stdout)


def height() -> int:
    """Lines that the terminal shows at once, with a remark and the prompt below; 0 for none."""
    return max(shutil.get_terminal_size((PIPED_WIDTH, 40)).lines - 3, 10) if is_terminal() else 0


def is_terminal() -> bool:
    """Whether a person reads stdout; it may also be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_notebook() -> bool:
    """Whether a notebook shows stdout, which it does in colours."""
    return type(sys.stdout).__module__.startswith("ipykernel.")


def is_read() -> bool:
    """Whether a person reads stdout, one way or the other."""
    return is_terminal() or is_notebook()


def color(choice: str) -> bool:
    """Whether to colour: as chosen, else where a person reads and does not refuse it."""
    if choice != "auto":
        return choice == "always"
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_read() and not refused


def has_unicode() -> bool:
    """Whether stdout can hold box drawing."""
    try:
        "├─○‖█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True


def flush() -> None:
    """Send what waits in the buffers on its way: the process is about to end by a signal."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(ValueError, OSError):
                stream.flush()


@contextlib.contextmanager
def stdout_reserved(reserve: bool) -> Iterator[None]:
    """While the block runs, send what anyone writes to stdout to stderr instead.

    On the level of file descriptors, so that child processes and C code are covered too.  Used when
    our own result on stdout has to stay readable for a machine.
    """
    if not reserve:
        yield
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):  # the program may have closed its stdout
            sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
