"""What the texts of all answers to a question about a graph have in common."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

from gradscope.errors import ReportError
from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.options import Options
from gradscope.render.words.table import Writer
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


class GraphAnswer(Writer):
    """What a report says in answer to a command, as lines for the terminal."""

    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(options)
        self.report = report
        self.graph = report.graph

    @cached_property
    def _files(self) -> dict[str, str]:
        return short_files({origin.file for origin in self.graph.origins})

    def budget(self, rows: int) -> int:
        """How many of so many rows the terminal has lines for, or all where these are asked for."""
        return rows if self.options.folding.all else self.options.lines

    def source(self, node: int) -> str:
        """``demo.py:7``, the line that made a node, or "" where it was not seen."""
        origin = self.graph.origin_of(self.graph.nodes[node])
        return "" if origin is None else f"{self._files[origin.file]}:{origin.line}"

    def leaf(self, position: int) -> str:
        """The name of a leaf, made visible."""
        return visible(self.graph.leaves[position].name)
