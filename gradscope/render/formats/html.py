"""The report as one self-contained interactive page.

The page holds the whole report (:mod:`gradscope.render.drawing.pack`) and the viewer, which is
built from ``web/`` and committed as ``assets/viewer.js`` and ``viewer.css``.  It works from a file,
without a network, under a policy that forbids everything but its own script and style.  All foreign
text is in the compressed data and is shown by the viewer as text; only the title is written here.
"""

from __future__ import annotations

import html
from importlib import resources

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing.pack import compressed, histograms, pack
from gradscope.render.drawing.spread import passes_of
from gradscope.render.options import Options
from gradscope.render.words.page import policy

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
</head>
<body>
<p id="notice">{notice}</p>
<style>{style}</style>
<script type="application/octet-stream" id="report">{data}</script>{histograms}
<script>{script}</script>
</body>
</html>
"""


NOTICE = (
    "This page draws a graph with the script at its end. If this sentence stays, the file is cut "
    "off or damaged, or JavaScript is switched off."
)
"""Seen until the graph is drawn.  It comes before everything long, so that it is there however much
of the file is not."""

_HISTOGRAMS = '\n<script type="application/octet-stream" id="histograms">{data}</script>'


def render(report: Report, options: Options) -> str:
    """The page; what it opens and shows is chosen in it."""
    passes_of(report, options.rank)  # raises where there is no such rank
    data = compressed(pack(report, every_value=options.values, rank=options.rank))
    bars = histograms(report)
    target = visible(report.meta.target) or "graph"
    script = _asset("viewer.js")
    return _PAGE.format(
        policy=policy(script),
        title=html.escape(f"{target} · gradscope"),
        notice=NOTICE,
        style=_asset("viewer.css"),
        data=data,
        histograms=_HISTOGRAMS.format(data=compressed(bars)) if any(bars) else "",
        script=script,
    )


def _asset(name: str) -> str:
    return (resources.files("gradscope.render") / "assets" / name).read_text("utf-8")
