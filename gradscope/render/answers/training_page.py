"""A training that was watched as a page: the loss, and below it a heat map of parts and steps.

Complete in one file, under a policy that lets only its own script run.  What is foreign is escaped
here, or goes through the script as text; a link leads to a file beside the page or below."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import groupby
from pathlib import PurePosixPath
from urllib.parse import quote

from gradscope.escaping import as_json, visible
from gradscope.model.history import History, Span
from gradscope.model.plain import GradientInfo, to_json
from gradscope.render.answers import training
from gradscope.render.drawing.scale import STEPS, Scale
from gradscope.render.options import Options
from gradscope.render.words.numbers import number
from gradscope.render.words.page import asset, page
from gradscope.render.words.text import markup
from gradscope.words import count, listed

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_FINEST = len(_LETTERS) ** 2 - 1
_REPORT = re.compile(r"\.(html|json|json\.gz)$")

_BODY = """<style>{style}</style>
<h1>{title}</h1>
<p>{about}</p>
{remarks}
<noscript><pre>{text}</pre></noscript>
<div class="map">
{loss}
<div></div><div class="marks">{marks}</div>
<ol class="names">{names}</ol>
<div><canvas tabindex="0" role="img" aria-label="{label}" style="height:{height}px"></canvas></div>
<div></div><div class="axis"><span>step {first:,}</span><span>{last:,}</span></div>
</div>
<output></output>
<div class="legend">
<label>colour <select><option value="norm">norm</option>
<option value="own">against its own median</option></select></label>
<span class="steps"><b>{low}</b>{swatches}<b>{high}</b></span>
<span><i style="background:var(--bad)"></i>not finite</span>
<span><i class="hatch"></i>zero</span>
<span><i class="none"></i>no gradient</span>
</div>
<script type="application/json" id="data">{data}</script>"""


def render(history: History, options: Options) -> str:
    """The page."""
    spans, names = history.spans, list(history.names)
    infos = {name: history.of(name) for name in names}
    every = [info for own in infos.values() for info in own]
    scale = Scale(every)
    logs = [math.log10(float(one.norm)) for one in every if one.state == "finite" and one.norm]
    low, high = min(logs, default=0.0), max(logs, default=1.0)
    high = max(high, low + 1e-3)
    marks = list(_marks(history))
    data = {
        "names": [visible(name) for name in names],
        "cells": ["".join(_code(one, low, high) for one in infos[name]) for name in names],
        "first": [span.first for span in spans],
        "last": [span.last for span in spans],
        "marks": [{"at": at, "text": text, "link": link} for at, text, link in marks],
        "low": low,
        "high": high,
        "bottom": scale.low,
        "top": scale.high,
        "colors": STEPS,
    }
    plain = replace(options, color=False, unicode=True)
    about = [count(history.rows, "row"), history.sizes]
    about += [f"a column is the largest of {history.each:,} rows"] if history.each > 1 else []
    title = history.title or "training"
    body = _BODY.format(
        title=markup(title),
        style=asset("training.css"),
        about=" · ".join([*about, *map(markup, history.notes)]),
        remarks=_remarks(history, marks),
        text="\n".join(map(markup, training.render(history, plain).split("\n"))),
        loss=_loss(spans),
        marks="".join(_mark(at, text, link, len(spans)) for at, text, link in marks),
        names="".join(_name(history, name) for name in names),
        label=f"norms of the gradients of {count(len(names), 'part')} by step",
        height=20 * len(names),
        first=spans[0].first if spans else 0,
        last=spans[-1].last if spans else 0,
        low=number(float(f"{10**scale.low:.2g}")),
        high=number(float(f"{10 ** min(scale.high, 308.0):.2g}")),
        swatches="".join(f'<i style="background:{color}"></i>' for color in STEPS),
        # Nothing in a string may end the element.
        data=as_json(to_json(data).decode()).replace("<", "\\u003c"),
    )
    return page(f"{title} · gradscope", body, asset("training.js"))


def _name(history: History, name: str) -> str:
    words = zip(("share", "cosine"), training.shares(history, name), strict=True)
    told = "".join(f"<small>{kind} {markup(one)}</small>" for kind, one in words if one)
    return f'<li title="{markup(name)}">{told}<bdi>{markup(name)}</bdi></li>'


def _code(info: GradientInfo, low: float, high: float) -> str:
    """Two letters for a norm, on a logarithmic scale of 4096 steps; or a sign for what has none."""
    if info.state == "finite" and info.norm:
        place = round((math.log10(float(info.norm)) - low) / (high - low) * _FINEST)
        return _LETTERS[place // len(_LETTERS)] + _LETTERS[place % len(_LETTERS)]
    return {"non-finite": "!!", "zero": "~~"}.get(info.state, "  ")


def _marks(history: History) -> list[tuple[int, str, str]]:
    """What has happened: in which column, in words, and where its report is, or ""."""
    found = []
    if history.bad is not None:
        step, names = history.bad
        where = f" in {listed(names)}" if names else ""
        found.append((_column(history.spans, step), f"step {step:,}: not finite{where}", ""))
    for row, text in history.told_events():
        found.append((_column(history.spans, row.step), text, _link(row.report)))
    # Where there is a report, its sign is the one to be seen.
    found.sort(key=lambda one: bool(one[2]))
    return [(at, visible(text), link) for at, text, link in found]


def _column(spans: list[Span], step: int) -> int:
    return next((at for at, span in enumerate(spans) if span.last >= step), 0)


def _link(report: str) -> str:
    """A relative address of a file below; "" for whatever else a log may hold."""
    path = PurePosixPath(report)
    if path.is_absolute() or ".." in path.parts or not _REPORT.search(path.name):
        return ""
    return quote(f"./{path}")


def _mark(at: int, text: str, link: str, columns: int) -> str:
    sign = "▲" if link or "not finite" not in text else "✖"
    place = f'class="bad" title="{markup(text)}" style="left:{100 * (at + 0.5) / columns:.2f}%"'
    return f'<a {place} href="{link}">{sign}</a>' if link else f"<span {place}>{sign}</span>"


def _remarks(history: History, marks: list[tuple[int, str, str]]) -> str:
    rows = []
    for _, text, link in marks:
        end = f' <a href="{link}">report</a>' if link else ""
        rows.append(f'<li class="bad">{markup(text)}{end}</li>')
    if history.skipped:
        rows.append(f"<li>steps that a scaler left out: {history.skipped:,}</li>")
    return f"<ul>{''.join(rows)}</ul>" if rows else ""


def _loss(spans: list[Span]) -> str:
    """The smallest and the largest loss of each column, as a band; what is not finite as bars."""
    known = [one for span in spans for one in (span.lowest, span.highest) if one is not None]
    if not known and not any(span.is_lost for span in spans):
        return ""
    low, high = min(known, default=0.0), max(known, default=1.0)
    is_log = low > 0 and high > 30 * low
    ends = (math.log(low), math.log(high)) if is_log else (low, high)

    def height(loss: float) -> float:
        place = ((math.log(loss) if is_log else loss) - ends[0]) / ((ends[1] - ends[0]) or 1.0)
        return 96 - 92 * place if math.isfinite(place) else 50

    bands = []
    for is_known, group in groupby(enumerate(spans), lambda pair: pair[1].highest is not None):
        if is_known:
            points = [(at + 0.5, one.lowest or 0.0, one.highest or 0.0) for at, one in group]
            upper = [f"{x} {height(top):.1f}" for x, _, top in points]
            lower = [f"{x} {height(bottom):.1f}" for x, bottom, _ in reversed(points)]
            bands.append(f'<path d="M{"L".join([*upper, *lower])}Z"/>')
    bars = [
        f'<rect x="{at}" width="1" height="100"/>' for at, span in enumerate(spans) if span.is_lost
    ]
    words = "loss, log" if is_log else "loss"
    return (
        f'<div class="ends"><span>{number(high)}</span><span>{words}</span>'
        f"<span>{number(low)}</span></div>"
        f'<svg class="loss" viewBox="0 0 {len(spans)} 100" preserveAspectRatio="none" role="img" '
        f'aria-label="{words}">{"".join([*bands, *bars])}</svg>'
    )
