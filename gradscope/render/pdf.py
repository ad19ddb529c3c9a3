"""The drawing as PDF, for papers."""

from __future__ import annotations

from gradscope.render import dot
from gradscope.render._graphviz import draw
from gradscope.render.options import Options
from gradscope.report import Report


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.dot` for what is drawn."""
    return draw(dot.render(report, options), "pdf")
