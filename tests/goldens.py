"""Comparing text with the files under ``tests/golden``.

``GRADSCOPE_REGENERATE=1`` writes them anew; look at the difference before you commit it.  A
mismatch leaves what was found under ``tests/actual``, at the same name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent
GOLDEN, ACTUAL = FOLDER / "golden", FOLDER / "actual"

compared: set[str] = set()
"""The files that tests of this process have asked for."""


def compare(name: str, found: str) -> None:
    """Fail unless the golden file of this name holds exactly this text."""
    golden = GOLDEN / name
    compared.add(name)
    if os.environ.get("GRADSCOPE_REGENERATE"):
        _write(golden, found)
        return
    expected = golden.read_text("utf-8") if golden.exists() else ""
    if found != expected:
        _write(ACTUAL / name, found)
        lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "golden", "actual")
        raise AssertionError(f"{name} differs; see tests/actual\n" + "\n".join(lines))


def left_over(read: set[str]) -> list[str]:
    """The files that no test has asked for."""
    files = (path for path in GOLDEN.rglob("*") if path.is_file())
    return sorted({path.relative_to(GOLDEN).as_posix() for path in files} - read)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
