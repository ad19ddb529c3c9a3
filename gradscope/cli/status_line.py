"""One line on a terminal that gives way to whatever a program writes there.

Knows how a terminal is drawn on, and when it is somebody else's; must not know what the line says.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from threading import RLock
from typing import Any, TextIO

from rich.cells import cell_len, set_cell_size

from gradscope.escaping import visible
from gradscope.handlers import let_pass

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

_TASKS = Path("/proc/self/task")
_SHOWN, _BEGUN, _WRITES = range(3)
_TRACKER = b"multiprocessing.resource_tracker"
"""In the command line of a child that python starts for locks between processes, such as that of
tqdm; it writes nothing."""

_PATIENCE = 0.5
"""Seconds to wait for a drawing: a terminal that is held (Ctrl-S) takes none."""


class StatusLine:
    """A line that is wiped before the program writes, and drawn only at the start of a line.

    Takes no lock of the program's: it is written past python's streams.  The program's forked
    children share what is known of the terminal, for they write there as well.
    """

    wiping = b"\x1b[2K\r"
    """What takes it away."""

    def __init__(self, stream: TextIO, is_dim: bool) -> None:
        self._descriptor = stream.fileno()
        self._encoding = getattr(stream, "encoding", None) or "ascii"
        self._styles = (b"\x1b[2m", b"\x1b[22m") if is_dim else (b"", b"")
        self._process = os.getpid()
        # One that a handler of signals may take again in the middle of a drawing.
        self._lock = RLock()
        self._state = mmap(-1, 3)
        self._text = ""
        # Those of a notebook's kernel, say, are none of the program's.
        self._had_children = set(_children())

    @property
    def writes(self) -> int:
        """How often the program has written, up to 255 and then from 0 again."""
        return self._state[_WRITES]

    @property
    def is_own(self) -> bool:
        """Whether this is the process that draws, and no child of it."""
        return os.getpid() == self._process

    def draw(self, text: str, writes: int | None = None) -> None:
        """Show a text, unless the program has begun a line; or has written since ``writes``."""
        if not self.is_own or not self._lock.acquire(timeout=_PATIENCE):
            return
        try:
            was_shown = self._state[_SHOWN]
            if was_shown and text == self._text:
                return
            # Said before it is asked whether there is room: who writes now either sees this, and
            # waits to wipe the line, or has been seen.
            self._state[_SHOWN] = 1
            if self._state[_BEGUN] or writes not in (None, self.writes):
                self._state[_SHOWN] = was_shown
                return
            self._text = text
            with suppress(OSError):  # this is no terminal any more
                columns = os.get_terminal_size(self._descriptor).columns or 80
                self._write(self._drawn(text, columns - 1))
        finally:
            self._lock.release()

    def _drawn(self, text: str, columns: int) -> bytes:
        text = visible(text)
        if cell_len(text) > columns:
            text = set_cell_size(text, columns)
        begin, end = self._styles
        # The cursor stays at the start of the line, where the program expects it.
        try:
            data = text.encode(self._encoding)
        except UnicodeEncodeError:
            data = text.replace("·", "-").encode(self._encoding, "replace")
        return self.wiping + begin + data + end + b"\r"

    def _write(self, data: bytes) -> None:
        """Write to the terminal, as long as it is one and we are in its foreground."""
        if not os.isatty(self._descriptor):
            return
        # Without either it is not the terminal that started us, or there are no such groups.
        with suppress(OSError, AttributeError):
            if os.tcgetpgrp(self._descriptor) != os.getpgrp():
                return
        with suppress(OSError):
            os.write(self._descriptor, data)

    def wipe(self) -> None:
        """Take the line away, if there is one."""
        if not self._state[_SHOWN]:
            return
        # What a child knows of the lock is what it was when it was forked.
        is_locked = self.is_own and self._lock.acquire(timeout=_PATIENCE)
        try:
            if self._state[_SHOWN]:
                self._state[_SHOWN] = 0
                self._write(self.wiping)
        finally:
            if is_locked:
                self._lock.release()

    def give_way(self, begins_line: bool | None = None) -> None:
        """Somebody else is about to write: a line without an end, or with one, if that is known."""
        if begins_line is not None:
            self._state[_BEGUN] = begins_line
        self._state[_WRITES] = (self._state[_WRITES] + 1) % 256
        self.wipe()

    @contextmanager
    def giving_way_on(self, stream: TextIO) -> Iterator[None]:
        """While the block runs, whatever is written to a stream wipes the line first.

        The stream stays the object that the program knows; only what writes is covered, of the
        text and of the bytes below it.
        """
        covers = [
            cover
            for one in (stream, getattr(stream, "buffer", None))
            if isinstance(one, io.IOBase)
            for cover in (
                _Cover(one, "write", self._before_write, self._after_write),
                _Cover(one, "flush", self._now, self._after_write),
            )
        ]
        try:
            yield
        finally:
            for cover in reversed(covers):
                cover.remove()

    def _before_write(self, stream: io.IOBase, text: str | bytes = "") -> None:
        if text and stream.isatty():
            self.give_way(begins_line=text[-1:] not in ("\n", b"\n"))

    def _after_write(self, stream: io.IOBase, *_: object) -> None:
        """Nothing: the line comes back when it is drawn again."""

    def _now(self, stream: io.IOBase) -> None:
        if stream.isatty():
            self.give_way()

    def has_room(self) -> bool:
        """Whether the terminal is nobody else's: nobody edits a line there or fills the screen, and
        no child writes that knows nothing of this line."""
        if termios is not None:
            try:
                modes = termios.tcgetattr(self._descriptor)[3]
            except termios.error:
                return False
            if not modes & termios.ICANON or not modes & termios.ECHO:
                return False
        return not _has_strange_children(self._had_children)


class _Cover:
    """A method of one stream, before and after which something else is done while it is covered."""

    def __init__(
        self,
        stream: io.IOBase,
        name: str,
        before: Callable[..., None],
        after: Callable[..., None],
    ) -> None:
        self._stream, self._name = stream, name
        method = getattr(stream, name)

        def covered(*given: Any) -> Any:
            try:
                before(stream, *given)
            except Exception as error:  # ours; and what is wrong with it, the stream says
                let_pass(error)
            finally:  # also after Ctrl-C, for what was printed before may wait in the stream
                result = method(*given)
            try:
                after(stream)
            except Exception as error:
                let_pass(error)
            return result

        self._covered = covered
        with suppress(AttributeError):  # somebody's own stream
            setattr(stream, name, covered)

    def remove(self) -> None:
        """Uncover it, unless the program has covered it itself by now."""
        if vars(self._stream).get(self._name) is self._covered:
            delattr(self._stream, self._name)


def _has_strange_children(known: Collection[str]) -> bool:
    """Whether a child of this process that is not known is running another program, or may be."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except (AttributeError, OSError):
        return True  # not to be known here
    if not _TASKS.exists():
        return True
    own = _command_line("self")
    lines = (_command_line(child) for child in _children() if child not in known)
    return any(_TRACKER not in line for line in lines if line not in (b"", own))


def _children() -> Iterator[str]:
    """The numbers of the processes that this one has started; none where that is not told."""
    with suppress(OSError):
        for task in _TASKS.iterdir():
            yield from (task / "children").read_text().split()


def _command_line(process: str) -> bytes:
    """The command line of a process; b"" of one that has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path("/proc", process, "cmdline").read_bytes()
    return b""
