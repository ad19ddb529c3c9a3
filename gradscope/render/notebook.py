"""A report as a notebook shows it: a small picture, else the coloured tree; on request the page.

The page holds the viewer, some 100 kB, so a saved notebook would grow by that with every report.
"""

from __future__ import annotations

import html
from dataclasses import replace

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.formats import ANSWERS
from gradscope.model.report import Report
from gradscope.render import answer_format, as_text
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words.page import fragment

MOST_DRAWN = 60
"""Boxes of a picture that can still be read in a cell's output."""

_TREE = ANSWERS["graph"]["text"]

WIDTH = 120
"""Columns of the tree; a notebook scrolls what is wider than it is itself."""

_FRAME = (
    '<iframe title="{title}" sandbox="allow-scripts allow-downloads" '
    'style="width: 100%; height: {height}px; border: 1px solid #8886; border-radius: 4px" '
    'srcdoc="{page}"></iframe>'
)


def mime_bundle(report: Report, short: str, options: Options | None = None) -> dict[str, str]:
    """What a notebook may choose from, by MIME type: the ``short`` text, and a picture of at most
    :data:`MOST_DRAWN` boxes, or the coloured tree where it has more or there is no Graphviz.

    ``options``: how much of the graph is drawn."""
    shown = {"text/plain": short}
    options = replace(options or Options(), width=WIDTH, color=True)
    # An explanation, a check or a count of memory has its answer in a text of its own.
    if answer_format(report, "text") == _TREE and _boxes(report, options) <= MOST_DRAWN:
        try:
            shown["image/svg+xml"] = as_text(report, "svg", options)
            return shown
        except GradscopeError:  # the tree tells the same without Graphviz
            pass
    shown["text/html"] = fragment(as_text(report, answer_format(report, "text"), options))
    return shown


def _boxes(report: Report, options: Options) -> int:
    view = Scene(report, options).view
    return len(view.items) + len(view.roots)


def frame(report: Report, height: int) -> str:
    """The interactive page of a report in a frame of its own, ``height`` pixels high, that can
    reach neither the notebook nor the network."""
    page = as_text(report, "html")
    title = html.escape(visible(f"the graph of {report.meta.target or 'a tensor'}"), quote=True)
    return _FRAME.format(title=title, height=height, page=html.escape(page, quote=True))
