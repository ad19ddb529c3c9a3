"""The leaves as a table: the size of every parameter, of its gradient, and of one by the other."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.model.plain import Number
from gradscope.model.report import Report
from gradscope.render.drawing.facts import cancelling
from gradscope.render.drawing.head import Head
from gradscope.render.drawing.parameters import Parameter, parameters
from gradscope.render.drawing.scale import BAD_INK
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import Glyphs

COLUMNS = (
    Column("leaf", narrowest=12, comfort=20),
    Column("shape", drop=2),
    Column("dtype", drop=1),
    Column("‖w‖", right=True, drop=3),
    Column("‖g‖", right=True),
    Column("‖g‖/scale", right=True, drop=7),
    Column("‖g‖/‖w‖", right=True, drop=6),
    Column("cancelled", right=True, drop=8),
    Column("zeros", right=True, drop=4),
    Column("not finite", right=True, drop=5),
)


def render(report: Report, options: Options) -> str:
    """The table, ending with a newline; all rows, unless ``--top`` wants fewer."""
    return "\n".join(_lines(Scene(report, options))) + "\n"


def _lines(scene: Scene) -> Iterator[str]:
    head = Head(scene)
    rows = parameters(scene)
    yield head.title(_order(scene, len(rows)))
    if which := scene.passes():
        yield from head.wrapped(which)
    yield from head.table(COLUMNS, (_cells(row, head.glyphs) for row in rows))


def _order(scene: Scene, shown: int) -> str:
    """How many rows there are, and in which order."""
    options = scene.options
    column = options.sort or ("gradient" if options.top else "")
    first = "smallest first" if (options.top or 0) < 0 else "largest first"
    if column in ("name", "dtype"):
        order = f"by {column}"
    else:
        order = f"{column}: {first}" if column else "in the order of backward"
    return order if shown == len(scene.graph.leaves) else f"{shown:,} shown, {order}"


def _cells(row: Parameter, glyphs: Glyphs) -> list[Cell]:
    bad = row.state == "non-finite"
    ink = BAD_INK if bad else ""
    silent = glyphs.silent if row.state in ("none", "not reached") else ""
    norm = f"{glyphs.bad} " * bad + _number(row.gradient)
    return [
        (Part(f"{glyphs.leaf} ", "green", "never"), Part(row.name, "green", "start")),
        numbers.shape(row.shape),
        Part(row.dtype, "dim"),
        _number(row.weight),
        Part(silent or norm, ink),
        Part(_number(row.unscaled), ink),
        Part(_number(row.ratio), ink),
        "" if row.cancelled is None else cancelling(row.cancelled),
        _zeros(row),
        Part(f"{row.nonfinite:,}" if row.nonfinite else "", ink),
    ]


def _number(value: Number | None) -> str:
    return "" if value is None else numbers.number(value)


def _zeros(row: Parameter) -> str:
    """How many elements are 0; ``all`` catches the eye."""
    if not row.zeros:
        return "" if row.zeros is None else "0"
    return "all" if row.state == "zero" else f"{row.zeros:,}"
