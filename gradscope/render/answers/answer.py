"""What the texts of all answers to a question about a graph have in common."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeVar

from gradscope.errors import ReportError
from gradscope.escaping import visible
from gradscope.model.plain import Number
from gradscope.model.report import Report
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Column, Writer
from gradscope.render.words.text import short_files

Found = TypeVar("Found")


def held(found: Found | None, way: str) -> Found:
    """An answer that a report holds, which is made this way.

    Raises:
        ReportError: when it holds none.
    """
    if found is None:
        raise ReportError("the report does not hold that answer", f"make one with {way}")
    return found


COMPARED = (
    Column("backward", right=True),
    Column("differences", right=True),
    Column("off by", right=True),
)


def compared(analytic: Number | None, numeric: Number | None, error: Number | None) -> list[str]:
    """Three cells: what backward says, what differences say, and how far that is apart."""
    if numeric is None:
        return [""] * 3
    said = "none" if analytic is None else numbers.number(analytic)
    return [said, numbers.number(numeric), _off(error)]


def _off(error: Number | None) -> str:
    """A relative difference: its order of magnitude where it is small, else in percent."""
    value = math.nan if error is None else float(error)
    if not math.isfinite(value):
        return ""
    if value < 0.01:
        return f"<1e{max(math.ceil(math.log10(value)), -6)}" if value else "<1e-6"
    return f"{value:.0%}"


class GraphAnswer(Writer):
    """What a report says in answer to a command, as lines for the terminal."""

    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(options)
        self.report = report
        self.graph = report.graph

    @cached_property
    def files(self) -> dict[str, str]:
        """The files of the graph, as they are called in a table."""
        return short_files({origin.file for origin in self.graph.origins})

    def budget(self, rows: int) -> int:
        """How many of so many rows the terminal has lines for, or all where these are asked for."""
        return rows if self.options.folding.all else self.options.lines

    def source(self, node: int) -> str:
        """``demo.py:7``, the line that made a node, or "" where it was not seen."""
        return self.place(self.graph.nodes[node].origin)

    def place(self, origin: int | None) -> str:
        """The same of an index into the graph's origins."""
        made = None if origin is None else self.graph.origins[origin]
        return "" if made is None else f"{self.files[made.file]}:{made.line}"

    def leaf(self, position: int) -> str:
        """The name of a leaf, made visible."""
        return visible(self.graph.leaves[position].name)
