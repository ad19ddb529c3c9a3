"""The drawing as PNG, for places that take no vectors."""

from __future__ import annotations

from gradscope.model.report import Report
from gradscope.render.drawing.graphviz import draw
from gradscope.render.formats import dot
from gradscope.render.options import Options


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.formats.dot` for what is drawn."""
    return draw(dot.render(report, options), "png")
