"""The drawing as PNG, for places that take no vectors."""

from __future__ import annotations

from gradscope.errors import GradscopeError
from gradscope.model.report import Report
from gradscope.render.drawing.graphviz import POINTS, draw, size
from gradscope.render.formats import dot
from gradscope.render.options import Options
from gradscope.words import either

LARGEST = 32_000
"""Pixels of a side; Graphviz shrinks what has more than 32,767, without a word."""

SHARP, PLAIN = 144, 72
"""Dots per inch: with twice the pixels small text stays sharp."""


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.formats.dot` for what is drawn.

    Raises:
        GradscopeError: if it is too large for its text to be read.
    """
    source = dot.laid_out(report, options)
    points = max(size(source))
    if points * PLAIN / POINTS > LARGEST:
        raise GradscopeError(
            f"a PNG of {points:,.0f} pixels could not be read: it would be shrunk to {LARGEST:,}",
            f"without pixels: {either('-o FILE.svg or -o FILE.html', 'a .svg or .html file')}",
        )
    dpi = SHARP if points * SHARP / POINTS <= LARGEST else PLAIN
    return draw(source, "png", f"-Gdpi={dpi}")
