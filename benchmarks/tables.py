"""Tables in Markdown, and the place in a page of the docs that a benchmark fills in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
END = "<!-- end of table -->\n"


def line(cells: Iterable[str]) -> str:
    """One row."""
    return f"| {' | '.join(cells)} |"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join([line(head), line(ruler), *map(line, rows)]) + "\n"


def fill(page: str, command: str, text: str) -> None:
    """Write a text into a page of the docs, between the mark of a command and the end mark."""
    path, begin = ROOT / "docs" / page, f"<!-- table: {command} -->\n"
    before, _, rest = path.read_text("utf-8").partition(begin)
    path.write_text(before + begin + text + END + rest.partition(END)[2], "utf-8")
