"""The drawing as SVG: scalable, with a tooltip on every part."""

from __future__ import annotations

from gradscope.render import dot
from gradscope.render._graphviz import draw
from gradscope.render.options import Options
from gradscope.report import Report


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.dot` for what is drawn."""
    return draw(dot.render(report, options), "svg")
