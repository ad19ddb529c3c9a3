"""Running Graphviz: ``dot`` where there is one, else the copy inside the pygraphviz package.

pygraphviz runs in a child process, because its library prints warnings, and a failed drawing
leaves it in a state in which the next one may crash.  Knows nothing of reports."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from typing import Literal

from gradscope.errors import GradscopeError, ToolMissing
from gradscope.words import either, folding

Picture = Literal["svg", "png", "pdf", "plain"]

POINTS = 72
"""Points of an inch."""

TIMEOUT = 120
"""Seconds after which a layout is given up."""

_CHILD = """
import sys, pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode("utf-8"))
picture = graph.draw(format=sys.argv[1], prog="dot", args=" ".join(sys.argv[2:]))
sys.stdout.buffer.write(picture)
"""

_HINTS = (
    "install Graphviz: pip install 'gradscope-torch[dot]'  or  apt/brew install graphviz",
    "without it: a .dot file for the drawing as text, a .json file for the report",
)


def draw(source: str, format: Picture, *arguments: str) -> bytes:
    """The picture of a graph in the DOT language; ``arguments`` are further ones of ``dot``.

    Raises:
        ToolMissing: if there is neither ``dot`` nor pygraphviz.
        GradscopeError: if the layout takes too long, or fails.
    """
    return _run([*_command(format), *arguments], source)


def size(source: str) -> tuple[float, float]:
    """How wide and high the layout of a graph is, in points.

    Raises:
        GradscopeError: as :func:`draw` does.
    """
    # The first line is: graph, scale, width, height; in inches.
    first = _run(_command("plain"), source).split(maxsplit=4)
    return POINTS * float(first[2]), POINTS * float(first[3])


def _command(format: Picture) -> list[str]:
    wish = os.environ.get("GRADSCOPE_DOT")
    program = shutil.which(wish or "dot")
    if program:
        return [program, f"-T{format}"]
    if wish:
        raise ToolMissing(f"GRADSCOPE_DOT={wish} is not a program that can be run", *_HINTS)
    # Only looked for: importing it here would load the library into this process.
    if importlib.util.find_spec("pygraphviz") is None:
        raise ToolMissing(f"{format} needs Graphviz, which is not installed", *_HINTS)
    # -P: a file of the user's named like a module must not be imported in its place.
    return [sys.executable, "-P", "-c", _CHILD, format]


def _run(command: list[str], source: str) -> bytes:
    # A fixed date makes equal pictures equal files.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    try:
        done = subprocess.run(
            command,
            input=source.encode("utf-8", "backslashreplace"),
            capture_output=True,
            timeout=TIMEOUT,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        what = f"Graphviz had no layout after {TIMEOUT} seconds"
        hint = f"draw less: {folding()}; or {either('-o FILE.html', 'a .html file')}"
        raise GradscopeError(what, hint) from None
    except OSError as error:
        raise ToolMissing(f"cannot run {command[0]}: {error.strerror or error}", *_HINTS) from None
    # Warnings go to stderr also on success, and concern nobody then.
    if done.returncode or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[-1] if said else f"status {done.returncode}"
        raise GradscopeError(
            f"Graphviz failed: {reason}",
            f"save the report and try again: {either('-o FILE.json', 'a .json file')}",
        )
    return done.stdout
