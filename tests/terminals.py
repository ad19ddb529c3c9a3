"""A terminal as programs see one, and a person who types into it."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
from collections.abc import Iterable, Mapping
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

PROMPTS = (r"\(Pdb\) ", r"ipdb> ", ">>> ", r"\.\.\. ", r"In \[\d+\]: ", r" +\.\.\.: ")
"""After which a person types: of pdb, ipdb, python, and IPython."""

_WAITING = re.compile(f"(^|\n)({'|'.join(PROMPTS)})$")
_TYPED = re.compile(f"^(?:{'|'.join(PROMPTS)})(.*)$", re.MULTILINE)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x1b[=>]")


def open_terminal(width: int) -> tuple[int, int]:
    """The two ends of a terminal of this width: the person's, and the program's."""
    leader, follower = pty.openpty()
    ioctl(follower, TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    return leader, follower


def read(leader: int) -> bytes:
    """What the program has written; b"" when it has gone, or says nothing for two minutes."""
    select.select([leader], [], [], 120)
    try:
        return os.read(leader, 65536)
    except OSError:  # Linux says so when the last writer has gone
        return b""


def shown_by(
    command: list[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """All that a command writes to a terminal of its own, of 40 lines of 100 columns."""
    leader, follower = open_terminal(100)
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=follower, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        said = b"".join(iter(lambda: read(leader), b""))
        process.wait(timeout=120)
    os.close(leader)
    return said.decode()


def typed_in(shown: str) -> list[str]:
    """What a person typed, in a session as it stands on a terminal."""
    return _TYPED.findall(shown)


def type_into(
    command: list[str], lines: Iterable[str], folder: Path, environment: Mapping[str, str]
) -> str:
    """Run a command on a terminal, type a line at each of its prompts, at the last the end of the
    input; all that then stands on the terminal."""
    waiting = [*lines, "\x04"]
    leader, follower = open_terminal(100)
    with subprocess.Popen(
        command,
        cwd=folder,
        # The old prompt also in new pythons, whose own one moves the cursor about.
        env={**environment, "TERM": "dumb", "PYTHON_BASIC_REPL": "1"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    ) as process:
        os.close(follower)
        said, answered = b"", 0
        while new := read(leader):
            said += new
            if waiting and _WAITING.search(
                _ESCAPES.sub("", said[answered:].decode("utf-8", "replace"))
            ):
                answered = len(said)
                line = waiting.pop(0)
                os.write(leader, line.encode() if line == "\x04" else f"{line}\n".encode())
        os.close(leader)
        process.wait(timeout=120)
    return _ESCAPES.sub("", said.decode())
