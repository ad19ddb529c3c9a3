"""What a watched run must have in common with the plain one."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gradscope
from tests.fuzz.process import Done

AT_EXIT = "== at exit =="
OURS = "gradscope: "
OWN_FILES = f"{Path(gradscope.__file__).parent}{os.sep}"
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_VARYING = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?|'[^']*'|[0-9a-f]{8}")


@dataclass(frozen=True)
class Difference:
    """What is not as it should be.

    Attributes:
        command: the arguments of ``gradscope``.
        kind: what differs: ``status``, ``stdout``, ``report``...; ``crash`` if it is an error of
            gradscope's own.
        detail: the first words that differ, or an error.
    """

    command: tuple[str, ...]
    kind: str
    detail: str

    @property
    def signature(self) -> tuple[str, str, str]:
        """Equal for two programs that very likely show the same fault."""
        command = self.command[0] if self.kind == "report" else "any"
        return command, self.kind, _VARYING.sub("#", self.detail.splitlines()[-1])[:100]


def difference(command: Sequence[str], plain: Done, seen: Done) -> Difference | None:
    """What anybody can see of the two processes: the most telling difference of a run, if any."""
    words = tuple(command)
    if seen.timed_out:
        return Difference(words, "time", f"not ended after {seen.seconds:.0f} s")
    if seen.status < 0 and seen.status != plain.status:
        return Difference(words, "crash", f"killed by signal {-seen.status}")
    detail = _own_error(plain.err + plain.out, seen.err + seen.out)
    if detail:
        return Difference(words, "crash", detail)
    err = "".join(line for line in seen.err.splitlines(True) if not line.startswith(OURS))
    for kind, words_of in (
        ("stderr", _first_difference(plain.err, err)),
        ("stdout", _stdout(command, plain.out, seen.out)),
        ("status", _status(command, plain, seen)),
    ):
        if words_of:
            return Difference(words, kind, words_of)
    return None


def _own_error(expected: str, found: str) -> str:
    """The last frame of ours in a traceback that python does not show, and its error, or ""."""
    if OWN_FILES not in found or OWN_FILES in expected:
        return ""
    lines = found.splitlines()
    last = max(k for k, line in enumerate(lines) if OWN_FILES in line)
    error = next((line for line in lines[last + 1 :] if line and not line.startswith(" ")), "")
    place = lines[last].strip().partition(OWN_FILES)[2]
    file, _, function = place.partition('", line ')
    return f"{file}{function.partition(',')[2]}: {error}"


def _stdout(command: Sequence[str], plain: str, seen: str) -> str:
    if command[0] != "doctor":
        return _first_difference(plain, seen)
    # What the doctor tells stands between the program's end and python's.
    before, mark, after = plain.partition(AT_EXIT)
    told, seen_mark, seen_after = seen.partition(AT_EXIT)
    if (mark, after) != (seen_mark, seen_after):
        return _first_difference(mark + after, seen_mark + seen_after)
    return "" if told.startswith(before) else _first_difference(before, told)


def _status(command: Sequence[str], plain: Done, seen: Done) -> str:
    if plain.status:
        allowed = {plain.status}
    else:
        allowed = {0, 1} if command[0] in ("check", "doctor") else {0}
        if OURS in seen.err:
            allowed.add(2)
    return "" if seen.status in allowed else f"{plain.status} became {seen.status}"


def _first_difference(expected: str, found: str) -> str:
    """The first lines that differ, or ""."""
    one, two = (_ADDRESS.sub("0x…", text).splitlines() for text in (expected, found))
    if one == two:
        return ""
    lines = [
        line
        for line in difflib.unified_diff(one, two, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    return "\n".join(lines if len(lines) < 7 else [*lines[:5], lines[-1]])
