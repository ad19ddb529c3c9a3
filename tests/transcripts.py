"""The commands that the docs show: run them, compare what they print, or write it anew.

A fenced ``console`` block holds commands after ``$ `` and below each what it prints.  Where that
has prompts, of a debugger or of python, what stands after them is typed into a terminal.
``make docs`` (that is ``python -m tests.transcripts``) runs them all and rewrites the blocks;
``test_docs.py`` runs them and compares.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.forkserver import client, module, script
from tests.terminals import type_into, typed_in

ROOT = Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples" / "README.md",
)
BLOCK = re.compile(r"(^```console\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)
TOLERANCE = 5e-3
"""Numbers are shown with four digits, and processors differ in the last ones of a long float32
sum."""


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of one block, each with the output that is shown below it."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def make_runner(folder: Path) -> Callable[..., str]:
    """A function that runs a command line as a newcomer's terminal would, 100 columns wide; its
    second argument is the session to be repeated, if the command is one.

    ``folder`` holds what a user's home would: the remembered targets, and a ``gradscope`` on PATH.
    """
    client(folder / "gradscope")
    ranks = f'exec "{sys.executable}" -m tests.ranks.torchrun "{folder / "gradscope"}" "$@"'
    # A session in a terminal is python's own, and so is a module, but for pytest.
    # In which the plugin is imported already: too late to be rewritten for its asserts.
    pytest = f'exec {shlex.join(module("pytest"))} -p gradscope.testing.plugin --assert=plain "$@"'
    python = f'[ "$2" = pytest ] && shift 2 && PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {pytest}\n'
    python += f'[ -t 0 ] || [ "$1" = -m ] || exec "{script()}" "$@"\nexec "{sys.executable}" "$@"'
    for name, command in (("python", python), ("torchrun", ranks)):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    environment = {
        # pytest prints more where these are set.
        **{name: v for name, v in os.environ.items() if name not in ("CI", "BUILD_NUMBER")},
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "IPYTHONDIR": str(folder / "ipython"),
        "COLUMNS": "100",
        "LINES": "40",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
    }

    def run(line: str, shown: str = "") -> str:
        if lines := typed_in(shown):
            # A debugger names files in full.
            said = type_into(["bash", "-c", line], lines, ROOT, environment)
            return said.replace(f"{ROOT}{os.sep}", "").rstrip() + "\n"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        )
        text = done.stdout.decode().replace("\r", "")
        return text if text.endswith("\n") or not text else text + "\n"

    return run


_DIGITS = re.compile(r"\d+")


def same(shown: str, printed: str) -> bool:
    """Whether two outputs agree: word by word, numbers nearly, bars not at all."""
    left, right = _words(shown), _words(printed)
    return len(left) == len(right) and all(map(_same_word, left, right))


def _words(text: str) -> list[str]:
    without_bars = re.sub(r"[█▉▊▋▌▍▎▏▇▆▅▄▃▂▁]+", " ", text)
    return re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?|[^\s\d]+", without_bars)


def _same_word(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        a, b = float(left), float(right)
    except ValueError:
        return False
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def rewrite(page: Path) -> None:
    """Run every command of a page and put what it prints below it."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_runner(Path(folder))

        def fill(match: re.Match[str]) -> str:
            body = ""
            for line, shown in commands(match[2]):
                printed = run(line, shown)
                # Digits that differ from one machine to the next are no news.
                is_news = _DIGITS.sub("0", shown) != _DIGITS.sub("0", printed)
                body += f"$ {line}\n{printed if is_news or not same(shown, printed) else shown}"
            return match[1] + body + match[3]

        text = page.read_text("utf-8")
        new = BLOCK.sub(fill, text)
    if new != text:
        page.write_text(new, "utf-8")
        print(f"rewrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    for known_page in map(Path.absolute, map(Path, sys.argv[1:])) if sys.argv[1:] else PAGES:
        rewrite(known_page)
