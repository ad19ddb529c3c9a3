"""The report as one self-contained interactive page.

The page holds the whole report (:mod:`gradscope.render.drawing.pack`) and the viewer, which is
built from ``web/`` and committed as ``assets/viewer.js`` and ``viewer.css``.  It works from a file,
without a network, under a policy that forbids everything but its own script and style.  All foreign
text is in the compressed data and is shown by the viewer as text; only the title is written here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradscope.model.report import BackwardPass, Report
from gradscope.render.drawing.overlay import apart_packed, offered
from gradscope.render.drawing.overlay import packed as overlaid
from gradscope.render.drawing.pack import compressed, histograms, pack
from gradscope.render.drawing.scale import STEPS
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.several import call_words
from gradscope.render.drawing.verdict import Marks, Spot, sentences
from gradscope.render.options import Options
from gradscope.render.words.page import asset, page
from gradscope.simplify import Folding

MOST_LOOKED_AT = 100_000
"""Nodes, counted for each of several calls, for which the page says a verdict."""

NOTICE = (
    "This page draws a graph with the script at its end. If this sentence stays, the file is cut "
    "off or damaged, or JavaScript is switched off."
)
"""Seen until the graph is drawn.  It comes before everything long, so that it is there however much
of the file is not."""


def render(report: Report, options: Options) -> str:
    """The page; what it opens and shows is chosen in it."""
    report = report.holding(options.call)
    graphs = [_packed(one, options, not number) for number, one in enumerate(report.graphs)]
    graphs[0] |= _of_all(report, options)
    bars = [histograms(one) for one in report.graphs]
    stored = [_stored("report", number, graph) for number, graph in enumerate(graphs)]
    stored += [_stored("histograms", n, one) for n, one in enumerate(bars) if any(one)]
    head = (f'<p id="notice">{NOTICE}</p>', f"<style>{asset('viewer.css')}</style>")
    title = f"{report.meta.target or 'graph'} · gradscope"
    return page(title, "\n".join((*head, *stored)), asset("viewer.js"))


def _packed(report: Report, options: Options, is_first: bool) -> dict[str, Any]:
    """One graph with all that its boxes may show."""
    found = offered(report, options.overlay if is_first else None)
    packed = pack(report, every_value=options.values)
    overlays = list(map(overlaid, found))
    if is_first and options.overlay is not None and options.overlay.is_ratio:
        overlays.insert(0, apart_packed(options.overlay))
    return {**packed, "overlays": overlays}


def _of_all(report: Report, options: Options) -> dict[str, Any]:
    """What holds of all graphs: every backward call as its number, its graph and its place there,
    what made it, whether it failed, its verdict, and the nodes and lines that this is about, in the
    order in which the program made them; which of them and which overlay is shown first; and what
    is said in words."""
    calls = [
        (one, graph, place)
        for graph, held in enumerate(report.graphs)
        for place, one in enumerate(held.passes)
    ]
    if options.sides:
        told = [
            [0, graph, place, side, False, options.verdict, []]
            for (_, graph, place), side in zip(calls, options.sides, strict=False)
        ]
    else:
        told = [
            [one.number, graph, place, *_about(report.graphs[graph], one, options, len(calls))]
            for one, graph, place in calls
        ]
    return {
        "calls": sorted(told, key=lambda call: call[0]),
        "call": options.call,
        "overlay": int(options.overlay is not None) - 1,
        "answer": options.answer,
        "colors": STEPS,
    }


def _about(
    held: Report, backward: BackwardPass, options: Options, calls: int
) -> tuple[str, bool, str, list[Spot]]:
    """What made a call, whether it failed, and what a reader should take away of it, with where
    that is marked; nothing of that where there are too many ``calls`` to ask each."""
    said, marked = "", []
    if calls == 1 or calls * len(held.graph.nodes) <= MOST_LOOKED_AT:
        asked = replace(options, call=backward.number, folding=Folding())
        scene = Scene(held, asked)
        # The page finds itself what is not finite.
        spots = (spot for spot in Marks(scene).placed if spot.severity != "error")
        said, marked = "\n".join(told for told, _ in sentences(scene)), [*spots]
    return call_words(held.graph, backward), bool(backward.error), said, marked


def _stored(name: str, number: int, data: object) -> str:
    where = f"{name}{number or ''}"
    return f'<script type="application/octet-stream" id="{where}">{compressed(data)}</script>'
