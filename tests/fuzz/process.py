"""One run in a forked copy of this process: it starts in milliseconds, and what it does to the
interpreter dies with it."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import random
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

LOST = 119
"""The status of a run that was interrupted before or after what it was to run."""

ROOT = Path(__file__).parents[2]
OWN_FOLDER = str(Path(__file__).parent) + os.sep


@dataclass(frozen=True)
class Done:
    """A run that has ended: its exit status (negative: the signal), and what it printed."""

    status: int
    out: str
    err: str
    seconds: float
    timed_out: bool = False


@dataclass(frozen=True)
class Strike:
    """A signal that is sent to a process some seconds after its start."""

    signal: int
    after: float


def forked(
    action: Callable[[], object], folder: Path, limit: float, strike: Strike | None = None
) -> Done:
    """Run ``action`` in a forked process as python would run a program, and wait for its end.

    Args:
        action: what to run; may raise whatever a program may raise.
        folder: an existing folder, which becomes the current directory.
        limit: seconds after which the process and its children are killed.
        strike: a signal for the process.
    """
    out, err = folder / ".out", folder / ".err"
    start = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    streams = [os.open(path, flags, 0o600) for path in (out, err)]
    child = os.fork()
    if not child:
        try:
            _become(folder, streams)
            _end(_status_of(action))
        finally:  # Ctrl-C outside the program: the copy must never go on as this process
            os._exit(LOST)
    for stream in streams:
        os.close(stream)
    if strike is not None and not _wait(child, strike.after):
        os.kill(child, strike.signal)
    timed_out = not _wait(child, limit)
    if timed_out:
        os.kill(child, signal.SIGKILL)
    _, raw = os.waitpid(child, 0)
    # Whatever it has started and not ended is in its process group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    seconds = time.monotonic() - start
    texts = [path.read_text("utf-8", "backslashreplace") for path in (out, err)]
    out.unlink()
    err.unlink()
    return Done(os.waitstatus_to_exitcode(raw), texts[0], texts[1], seconds, timed_out)


def spawned(words: Sequence[str], folder: Path, limit: float, **variables: str) -> Done:
    """Run python with these words in a process of its own, which imports everything anew.

    Args:
        words: what follows ``python``.
        folder: its current directory.
        limit: seconds after which it is killed.
        variables: of its environment, besides those of this process.
    """
    start = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**environment(), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            texts = process.communicate(timeout=limit)
            timed_out = False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            texts, timed_out = process.communicate(), True
    out, err = (text.decode("utf-8", "backslashreplace") for text in texts)
    return Done(process.returncode, out, err, time.monotonic() - start, timed_out)


def ran(
    words: Sequence[str],
    folder: Path | None = None,
    known: Mapping[str, str] = os.environ,
    stdin: str = "",
    limit: float | None = 300,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Args:
        words: the command.
        folder: its current directory.
        known: its environment.
        stdin: what it reads.
        limit: for how many seconds it may run.
        variables: of its environment, besides.
    """
    return subprocess.run(
        words,
        cwd=folder,
        env={**known, **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=limit,
    )


def environment() -> dict[str, str]:
    """As programs find it for a user: nothing of the tests, and output in blocks."""
    ours = {"PYTHONUNBUFFERED", "PYTHONWARNINGS"}
    found = {name: value for name, value in os.environ.items() if name not in ours}
    return {**found, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}


def _wait(child: int, limit: float) -> bool:
    """Whether the process ended by itself in time."""
    descriptor = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([descriptor], [], [], limit)
    finally:
        os.close(descriptor)
    return bool(ready)


def _become(folder: Path, streams: Sequence[int]) -> None:
    os.setsid()
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    random.seed(0)  # python has seeded it anew, by chance, as it does in every fork
    # Torch has hundreds of them, which would take most of the time of a run.
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    # Those of this process are not those of a program.
    atexit._clear()
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    for number, descriptor in enumerate(streams, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    # New ones: those of pytest or of a pipe may be set up in another way than a program's.
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(  # type: ignore[misc]
        open(2, "wb", 0, closefd=False),  # noqa: SIM115
        errors="backslashreplace",
        write_through=True,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == 2 else signal.SIG_DFL)


def _status_of(action: Callable[[], object]) -> int:
    """Call it as the interpreter calls a program; a negative status stands for a signal."""
    try:
        action()
    except SystemExit as ending:
        code = ending.code
        if code is None or isinstance(code, int):
            return int(code or 0) & 0xFF
        print(code, file=sys.stderr)
        return 1
    except BaseException as error:
        shown = _without_own(error.__traceback__)
        if not hasattr(sys, "excepthook"):
            print("sys.excepthook is missing", file=sys.stderr)
        hook = getattr(sys, "excepthook", sys.__excepthook__)
        try:
            hook(type(error), error.with_traceback(shown), shown)
        except BaseException:
            traceback.print_exc()
        return -signal.SIGINT if type(error) is KeyboardInterrupt else 1
    return 0


def _without_own(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(OWN_FOLDER):
        frames = frames.tb_next
    return frames


def _end(status: int) -> None:
    """What the interpreter does at its end, but for taking itself apart."""
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
