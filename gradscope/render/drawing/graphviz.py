"""Running Graphviz: ``dot`` where there is one, else the copy inside the pygraphviz package.

pygraphviz runs in a child process, because its library prints warnings, and a failed drawing
leaves it in a state in which the next one may crash.  Knows nothing of reports."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from gradscope.errors import GradscopeError, ToolMissing
from gradscope.words import either, folding

Picture = Literal["svg", "png", "pdf", "plain", "dot"]

POINTS = 72
"""Points of an inch."""

APART = 36
"""Points between graphs that are drawn side by side."""

ROOM = 12
"""Points between an arrow and the border around it, which Graphviz does not keep."""

# With all of its value, for in that may stand what looks like another: a user's own words.
_ATTRIBUTE = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

_POINT = re.compile(r"([-+\d][-+\d.e]*),([-+\d][-+\d.e]*)")

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


class _Layout(NamedTuple):
    """The source of a graph with the places of all that is in it, and the points that it takes."""

    source: str
    left: float
    low: float
    right: float
    high: float

    @classmethod
    def of(cls, source: str) -> _Layout:
        """That of a graph whose attribute ``linelength`` is 0, for nothing is to be broken."""
        found = _run(_command("dot"), source).decode("utf-8")
        attributes = _ATTRIBUTE.findall(found)
        box = next(value for name, value in attributes if name == "bb")
        points = [*_points(box)]
        arrows = (place for name, value in attributes if name == "pos" for place in _points(value))
        points += ((x + room, y + room) for x, y in arrows for room in (-ROOM, ROOM))
        xs, ys = zip(*points, strict=True)
        return cls(found, min(xs), min(ys), max(xs), max(ys))

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.high - self.low

    def at(self, x: float, top: float) -> str:
        """A part of another graph, with its upper left corner there; its frame, if it has one, is
        around all of it."""
        across, up = x - self.left, top - self.high
        box = f"{self.left},{self.low},{self.right},{self.high}"

        def moved(point: re.Match[str]) -> str:
            return f"{float(point[1]) + across:.2f},{float(point[2]) + up:.2f}"

        def placed(found: re.Match[str]) -> str:
            name, value = found.groups()
            if name not in ("pos", "lp", "bb"):
                return found[0]
            return f'{name}="{_POINT.sub(moved, box if name == "bb" else value)}"'

        return f"subgraph {_ATTRIBUTE.sub(placed, self.source[self.source.index('{') :])}"


def _points(value: str) -> Iterator[tuple[float, float]]:
    return ((float(x), float(y)) for x, y in _POINT.findall(value))


def side_by_side(parts: Iterable[str]) -> list[str]:
    """The statements of a graph with the ``layout`` ``nop2`` of several, each of which has a layout
    of its own: in columns, the first at the left, each other below one where it has room.

    Raises:
        GradscopeError: as :func:`draw` does.
    """
    every = [*map(_Layout.of, parts)]
    tall, columns = max(one.height for one in every), list[list[_Layout]]()
    for one in every:
        below = (
            column
            for column in columns
            if one.width <= column[0].width
            and one.height + sum(above.height + APART for above in column) <= tall
        )
        column = next(below, None)
        if column is None:
            columns.append([one])
        else:
            column.append(one)
    placed, x = list[str](), 0.0
    for column in columns:
        top = 0.0
        for one in column:
            placed.append(one.at(x, top))
            top -= one.height + APART
        x += column[0].width + APART
    return placed


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
