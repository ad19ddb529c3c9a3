"""A run that waits in the middle of a call, and the questions that another process asks of it.

Each line is one JSON object: a question, ``{"question": "status"}``, or an answer, ``{"answer":
...}`` or ``{"error": "...", "hint": "..."}``.  What is asked is looked up, never evaluated.  Must
not know torch, nor what is asked and answered.
"""

from __future__ import annotations

import json
import os
import select
import socket as socket_module
import stat
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

# By name, so that a program may put others into the modules.
from socket import socket
from typing import Any

from gradscope.errors import OutputError, TargetError, ToolMissing
from gradscope.filesystem import key_of_here
from gradscope.handlers import let_pass

LONGEST = 103
"""Bytes of the name of a socket, on all systems that have them."""

PATIENCE = 5.0
"""Seconds that a connection may say nothing, or leave an answer unread, while others wait."""

AF_UNIX: Any = getattr(socket_module, "AF_UNIX", None)  # None on Windows, as what polls
poll: Any = getattr(select, "poll", None)

_ELSEWHERE = "set XDG_RUNTIME_DIR to a folder of yours that has a short name"


class Holder:
    """Holds a run, again and again.

    Args:
        going_on: what ends that; it is answered as the first question is when the run waits again,
            and otherwise not at all.

    Raises:
        ToolMissing: this system has no such sockets.
        OutputError: none can be where it would be looked for, or others could ask.
    """

    def __init__(self, going_on: tuple[str, ...]) -> None:
        self._place = _own_place()
        self._going_on = going_on
        self._left: list[socket] = []

    def wait(self, answers: Mapping[str, bytes]) -> str:
        """Answer, in JSON, until somebody says one of ``going_on``; returns that.

        Sleeps in the system meanwhile, which signals of the program end as they end any call.

        Raises:
            OSError: no socket can be had there.
        """
        with ExitStack() as ending:
            listening = ending.enter_context(socket(AF_UNIX))
            self._place.unlink(missing_ok=True)  # of a process that had this number before
            listening.bind(str(self._place))
            ending.callback(self._place.unlink, missing_ok=True)
            self._place.chmod(0o600)
            listening.listen()
            listening.settimeout(None)  # the program may have set another default
            for left in self._left:
                with left, suppress(OSError):
                    left.sendall(_answered(next(iter(answers.values()))))
            self._left.clear()
            said, waiting = "", poll()
            waiting.register(listening, select.POLLIN)
            while not said:
                waiting.poll()  # not in `accept`, which is python's, and would be in tracebacks
                connection, _ = listening.accept()
                try:
                    said = self._converse(connection, answers)
                except OSError as error:  # who asks may go away at any time
                    let_pass(error)
            return said

    def _converse(self, connection: socket, answers: Mapping[str, bytes]) -> str:
        """Answer what one asks; what it said to go on, or ""."""
        with ExitStack() as ending:
            ending.enter_context(connection)
            connection.settimeout(PATIENCE)
            with connection.makefile("rb") as lines:
                while line := lines.readline():
                    asked = _question(line)
                    if asked in self._going_on:
                        self._left.append(connection)
                        ending.pop_all()
                        return asked
                    connection.sendall(self._reply(asked, answers))
        return ""

    def _reply(self, asked: str, answers: Mapping[str, bytes]) -> bytes:
        if asked in answers:
            return _answered(answers[asked])
        known = ", ".join((*answers, *self._going_on))
        hint = f'one JSON object a line, {{"question": "status"}}; known are {known}'
        return json.dumps({"error": f"no such question: {asked!r}", "hint": hint}).encode() + b"\n"


def ask(question: str, process: int | None = None) -> Any:
    """What a run answers, as JSON is read; None where it has ended instead.

    Args:
        question: one that it knows.
        process: its number; otherwise the last that began to wait in this folder.

    Raises:
        ToolMissing, OutputError: as for :class:`Holder`.
        TargetError: none waits, or it does not know the question.
    """
    reply: dict[str, Any] = {}
    with _connected(_own_place(), process) as way, suppress(OSError, ValueError):
        way.sendall(json.dumps({"question": question}).encode() + b"\n")
        reply = json.loads(way.makefile("rb").readline())
    if "error" in reply:  # of another version
        raise TargetError(str(reply["error"]), str(reply.get("hint", "")))
    return reply.get("answer")


def _connected(place: Path, process: int | None) -> socket:
    names = f"{place.name.partition('-')[0]}-*" if process is None else f"*-{process}"
    for known in sorted(place.parent.glob(names), key=_since, reverse=True):
        way = socket(AF_UNIX)
        try:
            way.connect(str(known))
            return way
        except ConnectionRefusedError:  # its process was killed
            known.unlink(missing_ok=True)
        except OSError:  # it has gone on meanwhile
            pass
        way.close()
    raise TargetError(
        "no run waits in this folder" if process is None else f"no process {process} waits",
        "gradscope doctor --hold TARGET waits at a finding; gradscope ask --pid N asks elsewhere",
    )


def _own_place() -> Path:
    """Where this process would listen: in a folder of the user's own, named by the working folder
    and the process."""
    if AF_UNIX is None:
        raise ToolMissing("python has no Unix sockets on this system", "leave out --hold")
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    base = given if given.is_absolute() and given.is_dir() else Path(tempfile.gettempdir())
    folder = base / f"gradscope-{os.getuid()}"
    try:
        place = folder / f"{key_of_here()}-{os.getpid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError as error:
        raise OutputError(f"nobody can ask by {folder}: {error.strerror}", _ELSEWHERE) from None
    # In the temporary folder others may have put something in its place before.
    is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
    if not is_own or stat.S_IMODE(state.st_mode) & 0o077:
        raise OutputError(f"{folder} is not a folder that only you can read", _ELSEWHERE)
    if len(os.fsencode(place)) > LONGEST:
        raise OutputError(f"{place} is too long for the name of a socket", _ELSEWHERE)
    return place


def _since(place: Path) -> float:
    with suppress(OSError):
        return place.stat().st_mtime
    return 0.0


def _question(line: bytes) -> str:
    """What is asked; "" where the line asks nothing."""
    with suppress(ValueError, RecursionError, TypeError, KeyError):
        return str(json.loads(line)["question"])[:80]
    return ""


def _answered(answer: bytes) -> bytes:
    return b'{"answer":' + answer + b"}\n"
