"""Healed programs: the sick ones with a patch from ``cures/``.

``cures/NAME.patch`` heals ``sick/NAME.py``; of a program in a folder every file that changes has a
patch of its own, ``cures/NAME/FILE.patch``.  Markers (``# <- GSnnn``) go by themselves.  The rest
is a unified diff whose line numbers nobody reads: blocks after a line ``@@``, whose old lines
(those with a space or a minus before them) must stand in the program exactly once.  To make one::

    sed 's/ *# <[-~] GS.*//' sick/NAME.py | diff -U1 - healed.py > cures/NAME.patch

Nothing here imports torch.
"""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SICK, CURES = FOLDER / "sick", FOLDER / "cures"

_MARKER = re.compile(r" *# <[-~] GS\d\d\d\b.*")


class UnfitCureError(ValueError):
    """A patch that does not apply, or changes nothing."""


def cured(sick: str, patch: str) -> str:
    """The text of a program without markers and with a patch applied."""
    text = "\n" + _MARKER.sub("", sick)
    for block in re.split(r"^@@.*\n", patch, flags=re.MULTILINE)[1:]:
        lines = [(line[:1] or " ", line[1:] + "\n") for line in block.splitlines()]
        if any(sign not in " +-" for sign, _ in lines):
            raise UnfitCureError(f"a line begins with something else than space, + or -:\n{block}")
        old = "\n" + "".join(line for sign, line in lines if sign != "+")
        new = "\n" + "".join(line for sign, line in lines if sign != "-")
        if old == new:
            raise UnfitCureError(f"a block changes nothing:\n{block}")
        if (times := _count(text, old)) != 1:
            raise UnfitCureError(f"the old lines are there {times} times, not once:\n{block}")
        text = text.replace(old, new)
    if text == "\n" + _MARKER.sub("", sick):
        raise UnfitCureError("there is no block")
    return text[1:]


def _count(text: str, part: str) -> int:
    """How often a part is in a text; occurrences may overlap."""
    return sum(text.startswith(part, at) for at in range(len(text)))


def heal(sick: Path, into: Path) -> None:
    """Write the healed program of a file, or of a folder of files, into a folder."""
    if sick.is_dir():
        (into / sick.name).mkdir()
    for path in sorted(sick.glob("*.py")) or [sick]:
        place = path.relative_to(SICK)
        patch = (CURES / place).with_suffix(".patch")
        text = path.read_text("utf-8")
        if patch.exists():
            text = cured(text, patch.read_text("utf-8"))
        (into / place).write_text(_MARKER.sub("", text), "utf-8")


@cache
def _healed() -> tempfile.TemporaryDirectory[str]:
    """Where the healed programs of this process are, as long as it lives."""
    return tempfile.TemporaryDirectory(prefix="healed-")


@cache
def healed(sick: Path) -> Path:
    """The healed program of a file or folder in ``sick/``, under the same name."""
    into = Path(_healed().name)
    heal(sick, into)
    return into / sick.name
