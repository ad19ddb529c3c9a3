"""What one drawing of a report has no place for, and how to see it: the other backward calls, also
where they walk other graphs; the terms that a gradient was taken apart into.

Must not know of any one format; texts are not escaped for markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gradscope.escaping import visible
from gradscope.model.report import BackwardPass, Graph, Report
from gradscope.render.words.text import short_files, shorten
from gradscope.words import one_line, option

LONGEST = 24
"""Characters of the expression that makes a call."""

LONGEST_ERROR = 112
"""Characters of what a call failed with."""


def call_words(graph: Graph, backward: BackwardPass) -> str:
    """``g_loss.backward() train.py:41``: what made a call, as far as that is known."""
    if backward.origin is None:
        return "" if backward.number else "gradscope's own pass"
    origin = graph.origins[backward.origin]
    file = short_files({one.file for one in graph.origins})[origin.file]
    expression = shorten(visible(one_line(origin.expression)), LONGEST, "…")
    return f"{expression} {visible(file)}:{origin.line}".strip()


def drawn_alone(report: Report, call: int | None, is_picture: bool) -> Report:
    """The graph that a call walks, for a format that draws one, with a note on each of the others;
    the first for None.  A picture shows one call of those that walk it, and no terms."""
    report = report.holding(call)
    missing = _not_pictured(report, call) if is_picture else ()
    others = filter(None, map(_elsewhere, report.others))
    notes = (*_failed(report), *report.notes, *others, *missing)
    return msgspec.structs.replace(report, notes=notes)


def _failed(report: Report) -> Iterator[str]:
    """With what calls ended before all of the graph was reached."""
    calls: dict[str, list[int]] = {}
    for backward in report.passes:
        calls.setdefault(backward.error, []).append(backward.number)
    for error in filter(None, calls):
        which = _listed(calls[error])
        yield f"{which} failed with {shorten(one_line(error), LONGEST_ERROR, '…')}"


def _not_pictured(report: Report, call: int | None) -> Iterator[str]:
    held = report.call_numbers
    if len(held) > 1:
        shown = held[0] if call is None else call
        yield f"call {shown} of {_listed(held)}: {option('call', 'N')} shows another"
    if report.split is not None:
        yield f"what each {report.split.kind} brings is told in the text and the page"


def _elsewhere(other: Report) -> str:
    calls = other.call_numbers
    if not calls:
        return ""
    which = f"{_listed(calls)} walk{'s' * (len(calls) == 1)}"
    place = call_words(other.graph, other.passes[0])
    return f"{which} another graph ({place}): {option('call', calls[0])} shows it"


def _listed(calls: Sequence[int]) -> str:
    if len(calls) == 1:
        return f"backward call {calls[0]}"
    few = [*map(str, calls)] if len(calls) < 5 else [str(calls[0]), "…", str(calls[-1])]
    return f"backward calls {', '.join(few)}"
