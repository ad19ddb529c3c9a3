"""The one place that writes results: to a file, whole or not at all, or to stdout.

Must not know what it writes.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradscope.errors import OutputError
from gradscope.escaping import for_terminal

STDOUT = "-"


def settled(path: str) -> str:
    """The same file, also when the current directory has become another one; ``-`` stays."""
    if path == STDOUT or Path(path).is_absolute():
        return path
    return str(Path.cwd() / path)


def check_writable(path: str) -> None:
    """Find out before a long run whether its result could be written.

    Raises:
        OutputError: what is wrong with the place, and what to do.
    """
    if path == STDOUT:
        if sys.stdout is None:
            raise _closed()
        return
    target = _target(path)
    try:
        if target.is_dir():
            raise OutputError(
                f"{path} is a directory", f"name a file in it: {target / 'graph.svg'}"
            )
        parent = target.parent
        if not parent.is_dir():
            raise OutputError(
                f"{path}: there is no folder {parent}", f"make it first: mkdir -p {parent}"
            )
        exists = target.exists()
    except ValueError as error:
        raise OutputError(f"cannot write {path!r}: {error}", "choose another name") from None
    except OSError as error:
        raise _refused(path, error) from None
    # Renaming would replace a write-protected file; its owner did not want that.
    if exists and not os.access(target, os.W_OK):
        raise OutputError(f"{path} is write-protected", "choose another name")
    if not _is_special(target) and not os.access(parent, os.W_OK):
        raise OutputError(f"{path}: the folder {parent} is read-only", "choose another folder")


def write(path: str, content: str | bytes) -> bool:
    """Write to a file, or to stdout for ``-``; a name that ends in ``.gz`` is compressed.

    An existing file keeps its mode, and on any failure its content; a link is followed.

    Returns:
        False if the reader of stdout went away, which is its right; else True.

    Raises:
        OutputError: what is wrong with the place, and what to do.
    """
    if isinstance(content, str):
        # Files of text are looked at in terminals, too.
        content = for_terminal(content)
    if path == STDOUT:
        return _write_stdout(content)
    check_writable(path)
    data = _encoded(content, "utf-8")
    if path.endswith(".gz"):
        from gradscope.model.storage import pack

        data = pack(data)
    target = _target(path)
    try:
        if _is_special(target):
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise _refused(path, error) from None
    return True


def _target(path: str) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise OutputError(f"cannot write {path!r}: {error}", "choose another name") from None


def _is_special(target: Path) -> bool:
    """Devices and pipes are written to; a file put in their place would destroy them."""
    return target.exists() and not target.is_file()


def _closed() -> OutputError:
    return OutputError("cannot write to stdout: it is closed", "name a file: -o FILE")


def _refused(path: str, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write {path}: {error.strerror or error}", "choose another place for -o"
    )


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target, then rename over it in one step."""
    beside = target.parent / f".gradscope-{secrets.token_hex(6)}"
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    with _signals_waiting():
        # os.open rather than tempfile: a new file gets the mode the user's umask gives.
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            if mode is not None:
                beside.chmod(mode)
            beside.replace(target)
        # Also on a full disk nothing half-written stays behind.
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _signals_waiting() -> Iterator[None]:
    """While the block runs, the signals that end a process wait: one that came between writing and
    renaming would leave the file beside."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    names = ("SIGHUP", "SIGINT", "SIGTERM")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {getattr(signal, name) for name in names})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write_stdout(content: str | bytes) -> bool:
    stream = sys.stdout
    if stream is None:
        raise _closed()
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        data = _encoded(content, encoding)
        is_text = isinstance(content, str)
        # What stands in for stdout in a notebook, a debugger or a test is made to be printed to.
        if hasattr(stream, "buffer") and (isinstance(stream, io.TextIOWrapper) or not is_text):
            # What the program printed before comes first, and it went through the text layer.
            stream.flush()
            _write_all(stream.buffer, data)
        else:
            stream.write(data.decode(encoding if is_text else "utf-8", "replace"))
        stream.flush()
    except BrokenPipeError:
        _silence_stdout()
        return False
    except OSError as error:
        raise OutputError(f"cannot write to stdout: {error.strerror or error}") from None
    return True


def _encoded(content: str | bytes, encoding: str) -> bytes:
    """Names may hold what an encoding lacks, such as lone surrogates; those become escapes."""
    return content.encode(encoding, "backslashreplace") if isinstance(content, str) else content


def _write_all(buffer: Any, data: bytes) -> None:
    """Under ``python -u`` nothing is buffered, and one write may take only a part."""
    if not isinstance(buffer, io.IOBase):
        buffer.write(data)  # somebody's own, which need not say how much it took
        return
    rest = memoryview(data)
    while rest:
        rest = rest[buffer.write(rest) :]


def _silence_stdout() -> None:
    """Let what is still in the buffer go nowhere, so that the exit does not complain of the pipe
    again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
