"""What a command tells as one page that needs nothing else: the text in colour, and a drawing.

The page asks for nothing from anywhere, and every text in it is escaped."""

from __future__ import annotations

from dataclasses import replace

from gradscope.errors import ToolMissing
from gradscope.model.history import History
from gradscope.model.report import Report
from gradscope.render.answers import explain, training
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


def render(found: Report | History, options: Options) -> str:
    """The page of an explanation, or of a training that was watched.

    Raises:
        ReportError: when the report holds no explanation.
    """
    coloured = replace(options, color=True, unicode=True)
    if isinstance(found, History):
        title, drawing = found.title, ""
        text = training.render(found, coloured)
    else:
        title, drawing = f"gradscope explain · {found.meta.target}", _drawing(found, options)
        text = explain.render(found, coloured)
    # Dimmed text, halfway to white, would be too pale on white.
    body = fragment(text).replace("#7f7f7f", "#4b5563")
    return page(title, f"{_STYLE}\n{body}\n{drawing}")


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
