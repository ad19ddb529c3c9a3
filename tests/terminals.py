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


def screen(raw: str, width: int, height: int = 40) -> list[str]:
    """The lines that are left on a terminal and above: text writes over text, the cursor moves, and
    at the bottom all scrolls.  One that is not known here is no move."""
    lines: list[list[str]] = [[]]
    row = column = top = 0
    saved = (0, 0)
    for part in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|\x1b[78D]|[^\x1b]", raw):
        count = int(part[2:-1]) if part[2:-1].isdigit() else 1
        if part == "\x1b[2K":
            lines[row] = []
        elif part == "\x1b[J":
            lines[row + 1 :] = [[] for _ in lines[row + 1 :]]
            del lines[row][column:]
        elif part == "\r":
            column = 0
        elif part in ("\n", "\x1bD"):
            row += 1
            column = 0 if part == "\n" else min(column, width - 1)
        elif re.fullmatch(r"\x1b\[\d*A", part):
            row, column = max(row - count, top), min(column, width - 1)
        elif re.fullmatch(r"\x1b\[\d*B", part):
            row, column = min(row + count, top + height - 1), min(column, width - 1)
        elif part == "\x1b7":
            saved = (row - top, column)
        elif part == "\x1b8":
            row, column = top + saved[0], saved[1]
        elif not part.startswith("\x1b"):
            if column == width:
                row, column = row + 1, 0
                lines += [[] for _ in range(row + 1 - len(lines))]
            lines[row] += [" "] * (column + 1 - len(lines[row]))
            lines[row][column] = part
            column += 1
        top = max(top, row - height + 1)
        lines += [[] for _ in range(row + 1 - len(lines))]
    return [text for line in lines if (text := "".join(line).rstrip())]


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
