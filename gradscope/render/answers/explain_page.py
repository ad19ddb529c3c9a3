"""An explanation as one page that needs nothing else: the text in colour, and the drawing.

The page asks for nothing from anywhere, and every text in it is escaped."""

from __future__ import annotations

from dataclasses import replace

from gradscope.errors import ToolMissing
from gradscope.model.report import Report
from gradscope.render.answers import explain
from gradscope.render.formats import svg
from gradscope.render.options import Options
from gradscope.render.words.page import fragment, page

MOST_DRAWN = 200
"""Nodes of a graph that is drawn below the text."""

_STYLE = """<style>
body { margin: 2em auto; max-width: 62em; padding: 0 1em; font: 15px system-ui, sans-serif;
  color: #16181d; background: #fff; }
figure { margin: 2em 0 0; overflow-x: auto; }
figcaption { color: #4b5563; }
</style>"""


def render(report: Report, options: Options) -> str:
    """The page.

    Raises:
        ReportError: when the report holds no explanation.
    """
    text = explain.render(report, replace(options, color=True, unicode=True))
    # Dimmed text, halfway to white, would be too pale on white.
    coloured = fragment(text).replace("#7f7f7f", "#4b5563")
    body = f"{_STYLE}\n{coloured}\n{_drawing(report, options)}"
    return page(f"gradscope explain · {report.meta.target}", body)


def _drawing(report: Report, options: Options) -> str:
    if len(report.graph.nodes) > MOST_DRAWN:
        return ""
    try:
        drawn = svg.render(report, options).decode()
    except ToolMissing:
        return ""  # the drawing is an extra; Graphviz is not needed for the text
    # An XML declaration may stand at the beginning of a document only.
    inside = drawn[drawn.index("<svg") :]
    return f"<figure>{inside}<figcaption>Arrows follow the gradient.</figcaption></figure>"
