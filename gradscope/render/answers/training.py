"""A training that was watched, as text: its loss, each part's norms as a strip, and what moved.

The same while it runs, in as many lines as there are.  Must not know who watches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from gradscope.escaping import visible
from gradscope.model.history import MOST_LOSSES, History, Span, columns
from gradscope.model.plain import GradientInfo
from gradscope.model.rows import Row, TermRow
from gradscope.render.drawing.scale import strip
from gradscope.render.drawing.split_groups import percent, signed
from gradscope.render.options import Options
from gradscope.render.words.numbers import number
from gradscope.render.words.table import Cell, Column, Part, Writer
from gradscope.render.words.text import cells, shorten
from gradscope.words import count, listed, ranked

FAR = 3.0
"""So many times more or less than usual is marked."""

_NUMBERS = 36
"""Columns of a line that are no strip and no name."""

_LONGEST_NAME = 24


@dataclass(frozen=True)
class Movement:
    """How a part has moved against the median of its own norms; 1 is not at all.

    ``now``: its last norm, as many times that; ``far``: the one furthest from it, and ``where`` it
    was.
    """

    now: float | None
    far: float
    where: Span


def movement(history: History, infos: list[GradientInfo], last: GradientInfo) -> Movement | None:
    """How the norms of a part have moved; None where none is finite and above 0."""
    known = [
        (float(info.norm), span)
        for info, span in zip(infos, history.spans, strict=True)
        if info.state == "finite" and info.norm is not None
    ]
    if not known:
        return None
    usual = statistics.median_low([norm for norm, _ in known])
    norm, where = max(known, key=lambda one: abs(math.log(one[0] / usual)))
    is_finite = last.state == "finite" and last.norm is not None
    return Movement(float(last.norm or 0) / usual if is_finite else None, norm / usual, where)


def shares(history: History, name: str) -> tuple[str, str]:
    """What a term brings of the gradient in the last row, and its cosine with the rest; "" where
    that is not known."""
    part = columns(history.last).get(name) if history.last is not None else None
    if not isinstance(part, TermRow):
        return "", ""
    return percent(part.share), "" if part.cosine is None else signed(part.cosine)


def sentence(row: Row) -> str:
    """``step 40, loss 0.31, norm 3152 (applied 10), largest h.2 2480``: one row in a line."""
    words = [f"step {row.step:,}"]
    words += [f"loss {number(row.loss)}"] if row.loss is not None else []
    if row.norm is not None:
        applied = f" (applied {number(row.applied)})" if row.applied is not None else ""
        words.append(f"norm {number(row.norm)}{applied}")
    words += [f"{row.calls:,} backward calls"] if row.calls > 1 else []
    bad = [name for name, part in row.modules.items() if part.nonfinite]
    norms = {name: part.norm for name, part in row.modules.items() if part.norm is not None}
    if bad:
        sick = [int(rank) for rank, one in row.ranks.items() if one.nonfinite and rank.isdigit()]
        began = f" from {ranked(sick)}" if sick and len(sick) < len(row.ranks) else ""
        words.append(f"not finite in {listed(bad)}{began}")
    elif len(norms) > 1:
        largest = max(norms, key=lambda name: norms[name])
        words.append(f"largest {largest} {number(norms[largest])}")
    if row.terms:
        most = max(row.terms, key=lambda name: row.terms[name].share)
        share = percent(row.terms[most].share)
        words.append(f"of {count(len(row.terms), 'term')} {most} brings {share}")
    words += ["step left out"] if row.skipped else []
    words += [f"{count(row.silent, 'rank')} silent"] if row.silent else []
    return visible(", ".join(words))


class _TrainingWriter(Writer):
    def __init__(self, history: History, options: Options) -> None:
        super().__init__(options)
        self.history = history
        last = history.spans[-1].parts if history.spans else {}
        infos = {name: history.of(name) for name in history.names}
        self.infos = infos
        self.moved = {
            name: movement(history, own, last.get(name, own[-1])) for name, own in infos.items()
        }

    def lines(self) -> Iterator[str]:
        """All that is known."""
        history = self.history
        if history.last is None:
            yield from self.wrapped(f"{history.title}: no rows")
        else:
            first = history.spans[0].first
            steps = f"steps {first:,} to {history.last.step:,}"
            words = [history.title, count(history.rows, "row"), steps, history.sizes]
            yield from self.wrapped(" · ".join(word for word in words if word), "bold")
            yield from self._losses()
            yield ""
            yield from self._table()
            yield ""
            yield from self._remarks()
        for note in history.notes:
            yield from self.wrapped(note)

    # ------------------------------------------------------------------ pieces

    def _strip_width(self) -> int:
        longest = max((cells(self.glyphs.text(name)) for name in self.history.names), default=0)
        last = self.history.last
        zeros = last is not None and any(part.zero for part in last.modules.values())
        room = self.options.width - min(longest, _LONGEST_NAME) - _NUMBERS - 14 * zeros
        return max(room, 12)

    def _table(self) -> Iterator[str]:
        width = self._strip_width()
        columns = [
            Column("part", narrowest=6, comfort=12, essential=True),
            Column("norm by step, log"),
            Column("last", right=True),
            Column("× median", drop=3, right=True),
            Column("update", drop=2, right=True),
            Column("share", right=True),
            Column("cosine", drop=2, right=True),
            Column("zero", drop=1, right=True),
        ]
        yield from self.table(columns, [self._row(name, width) for name in self.history.names])

    def _row(self, name: str, width: int) -> list[Cell]:
        last, infos, moved = self.history.last, self.infos[name], self.moved[name]
        part = columns(last).get(name) if last is not None else None
        style = "red" if infos[-1].state == "non-finite" else ""
        times = moved.now if moved is not None else None
        is_far = times is not None and not 1 / FAR < times < FAR
        norm = part.norm if part is not None else None
        share, cosine = shares(self.history, name)
        update, zero = None, ""
        if part is not None and not isinstance(part, TermRow):
            update, zero = part.update, f"{part.zero} of {part.parameters}" if part.zero else ""
        return [
            Part(shorten(visible(name), _LONGEST_NAME, "…", keep_end=True), style),
            Part(strip(infos, width, self.glyphs), style),
            Part(infos[-1].state if norm is None else number(norm), style),
            Part("" if times is None else f"{times:.3g}", "bold" if is_far else ""),
            "" if update is None else number(float(f"{update:.2g}")),
            share,
            cosine,
            zero,
        ]

    def _losses(self) -> Iterator[str]:
        spans, last = self.history.spans, self.history.last
        known = [one for one in spans if one.highest is not None or one.is_lost]
        if not known or last is None:
            return
        if 1 < len(self.history.losses) <= MOST_LOSSES:
            yield from self._several_losses()
            return
        infos = [_height(one) for one in known]
        words = " to ".join(number(end) for end in (known[0].highest, last.loss) if end is not None)
        room = max(self.options.width - len(words) - 7, 12)
        # Of losses of both signs there is no logarithm.
        is_above = all(one.lowest is None or one.lowest > 0 for one in known)
        drawn = strip(infos, room, self.glyphs) if is_above else ""
        yield self.fitted(f"loss {words}  {drawn}".rstrip())

    def _several_losses(self) -> Iterator[str]:
        """A line for each, for one strip would mix them."""
        for reached, ends in self.history.losses.items():
            parts = listed(reached) if reached else "no part"
            yield self.fitted(
                f"loss {' to '.join(map(number, ends))} of the steps that reach {parts}"
            )

    def _remarks(self) -> Iterator[str]:
        """What was not finite, what has happened, and what was far from its median."""
        history = self.history
        if history.bad is not None:
            step, names = history.bad
            where = f", in {listed(names)}" if names else ""
            line = f"{self.glyphs.bad} first not finite at step {step:,}{where}"
            yield from self.wrapped(line, "red")
        for row, text in history.told_events():
            kept = f" ({row.report})" if row.report else ""
            yield from self.wrapped(f"▲ {text}{kept}", "red")
        moved = {name: one for name, one in self.moved.items() if one is not None}
        order = sorted(moved, key=lambda name: -abs(math.log(moved[name].far)))
        far = [name for name in order if not 1 / FAR < moved[name].far < FAR][:3]
        if far:
            told = (f"{name} ×{moved[name].far:.3g} at {_steps(moved[name].where)}" for name in far)
            yield from self.wrapped(f"furthest from the median of its norms: {', '.join(told)}")
        if self.history.skipped:
            yield from self.wrapped(f"steps that a scaler left out: {self.history.skipped:,}")


render = _TrainingWriter.render


def _steps(span: Span) -> str:
    if span.first == span.last:
        return f"step {span.first:,}"
    return f"steps {span.first:,}\u2013{span.last:,}"


def _height(span: Span) -> GradientInfo:
    if span.is_lost or span.highest is None:
        return GradientInfo("non-finite")
    return GradientInfo("finite" if span.highest else "zero", abs(span.highest))
