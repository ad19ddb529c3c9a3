"""What a watched run must have in common with the plain one."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gradscope
from tests.fuzz.process import Done

STRICT = ("-W", "error")
"""Begins a command that is run where python makes errors of warnings."""

AT_EXIT = "== at exit =="
OURS = "gradscope: "
OWN_FILES = f"{Path(gradscope.__file__).parent}{os.sep}"
_EXPECTED = (
    r"the program leaves \d+ results that nothing else was made from",
    r"the root is a nested tensor of shape .* which can be given no gradient",
    r"the root is a tensor of layout .* which gets no gradient by itself",
    r"no gradient can be sent through the graph: .* has been given back",
    r"the root has shape .* so backward needs a gradient of that shape",
    r"the program made \d+ backward calls?, so there is no call",
    r"the program's backward call starts from \d+ tensors at once",
    r"this torch.autograd.grad call is vectorised",
    r"no autograd graph",
    r"nothing to examine: the program never called backward",
    r"backward failed with ",
    r"--create-graph needs a root of one element",
    r"--root \w+ is of type",
    r"[\w. -]+ carries no gradient history(: |, so no gradient comes to it)",
    r"backward starts from \d+ tensors at once$",
    r"--root \w+: no such variable (in the program|at a backward call)",
    r"\w+ is not a leaf: ",
    r"no graph of the gradient of ",
    r"cannot write to stdout: (it is closed|Bad file descriptor)",
    r"nothing is kept any more: ",
    r"\S+ depends on no leaf: ",
    r"the Jacobian by \S+ is .* at most \d+ rows and columns are printed",
    r"\S+ gets no gradient: ",
    r".* is one term: no sum of several tensors is at the top of its graph",
    r"(no rows of samples are seen where the loss is made|\S+ has no rows)",
    r"no tensor called \S+ is on the way of the gradient",
    r"two of the names are of one tensor",
    r"\S+ cannot depend on \S+, which is made of it",
    r"\d+ tensors were called \w+",
    r"no gradient fits the root, so there is none to take apart",
    r"outputs are the elements of one root, and backward starts otherwise",
    r"the root has no real elements",
    r"no piece of the gradient can be sent alone: ",
    r"no gradient can be sent alone: ",
    r".* are one tensor$",
    r".* have no axis of one size",
    r".* has no axis 0",
    r".* has no elements along an axis",
    r"torch \S+ cannot show saved tensors without running the program's saved-tensor hooks",
)
"""What gradscope may answer instead of a report; everything else is a fault."""

_OF_THE_MOMENT = ("USDT:", "ERROR:20")
"""Begins what torch's profiler says on stderr: the time of day.  That it finds no GPU it says where
torch is built for CUDA."""

_AROUND = re.compile(r"^.*tests/fuzz/runs\.py:\d+: (.*)\n  exec\(.*\n", re.MULTILINE)
"""Where a fork of this process warns of what lies around the program."""

_BEYOND = "<sys>:0" if sys.version_info >= (3, 13) else "sys:1"
"""What python names there."""

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
# Which of the variables differs is chance; the kind of its value is not.
_VARIABLE = re.compile(r"^([+-])[\w.\[\]']+: (\w+).*")
_VARYING = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e[+-]?\d+)?|'[^']*'|[0-9a-f]{8}")


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
        command = _name(self.command) if self.kind == "report" else "any"
        last = _VARIABLE.sub(r"\1variable \2", self.detail.splitlines()[-1])
        return command, self.kind, _VARYING.sub("#", last)[:100]


def is_strict(command: Sequence[str]) -> bool:
    """Whether a command is run where python makes errors of warnings."""
    return tuple(command[: len(STRICT)]) == STRICT


def _name(command: Sequence[str]) -> str:
    return command[len(STRICT) if is_strict(command) else 0]


def difference(
    command: Sequence[str], plain: Done, seen: Done, told: str = ""
) -> Difference | None:
    """What anybody can see of the two processes: the most telling difference of a run, if any.

    Args:
        command: the arguments of ``gradscope``.
        plain: the run under python.
        seen: the run under gradscope.
        told: what gradscope itself has to say on stdout, if that is known.
    """
    words = tuple(command)
    if seen.timed_out:
        return Difference(words, "time", f"not ended after {seen.seconds:.0f} s")
    if seen.status < 0 and seen.status != plain.status:
        return Difference(words, "crash", f"killed by signal {-seen.status}")
    detail = _own_error(plain.err + plain.out, seen.err + seen.out)
    if detail:
        return Difference(words, "crash", detail)
    ignored = (OURS, *_OF_THE_MOMENT)
    errs = [
        "".join(line for line in err.splitlines(True) if not line.startswith(ignored))
        for err in (_AROUND.sub(rf"{_BEYOND}: \1\n", one.err) for one in (plain, seen))
    ]
    for kind, words_of in (
        ("stderr", _first_difference(*errs)),
        ("stdout", _stdout(command, plain.out, seen.out, told)),
        ("status", _status(command, plain, seen)),
    ):
        if words_of:
            return Difference(words, kind, words_of)
    return None


def is_expected(line: str) -> bool:
    """Whether a line of gradscope's is one that a program or a command may lead to."""
    words = line.removeprefix(OURS)
    return any(re.match(pattern, words) for pattern in _EXPECTED)


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


def _stdout(command: Sequence[str], plain: str, seen: str, told: str) -> str:
    if _name(command) != "doctor":
        return _first_difference(plain, seen)
    # What the doctor tells stands in one place, somewhere between the program and its exit.
    if told and told in seen:
        return _first_difference(plain, seen.replace(told, "", 1))
    one, two = (_ADDRESS.sub("0x…", text) for text in (plain, seen))
    before, after = _common(one, two), _common(one[::-1], two[::-1])
    if before + after >= len(one) and not told:
        return ""
    return _first_difference(plain, seen)


def _common(one: str, two: str) -> int:
    """How many characters are the same from the start."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((k for k, (x, y) in pairs if x != y), min(len(one), len(two)))


def _status(command: Sequence[str], plain: Done, seen: Done) -> str:
    if plain.status:
        allowed = {plain.status}
    else:
        allowed = {0, 1} if _name(command) in ("check", "doctor") else {0}
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
