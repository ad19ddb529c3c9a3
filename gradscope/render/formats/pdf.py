"""The drawing as PDF on one page of A4, upright or lying as the drawing is: to print, or for
papers."""

from __future__ import annotations

from gradscope.model.report import Report
from gradscope.render.drawing.graphviz import draw, size
from gradscope.render.formats import dot
from gradscope.render.options import Options

A4 = (595, 842)
"""Points."""

MARGIN = 36
"""Points around the drawing, which printers need."""


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.formats.dot` for what is drawn.  A small one keeps
    its size."""
    source = dot.laid_out(report, options)
    width, height = size(source)
    page = A4 if height >= width else A4[::-1]
    zoom = min((page[0] - 2 * MARGIN) / width, (page[1] - 2 * MARGIN) / height, 1.0)
    # A viewport is the one way in which all versions of Graphviz make a page of a given size.
    viewport = f"-Gviewport={page[0]},{page[1]},{zoom:.4f}"
    return draw(source, "pdf", viewport, "-Gmargin=0")
