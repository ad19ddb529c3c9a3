"""The rows of a training in a bounded number of columns, in which nothing large is lost.

Plain data, in constant memory however long the training is; nothing here knows torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gradscope.errors import ReportError
from gradscope.model.plain import GradientInfo
from gradscope.model.rows import HEAD, LAYOUT, LogHead, ModuleRow, Row, TermRow, row_of, said
from gradscope.words import count, ranked

MOST_PARTS = 201
"""Parts of a model that are kept apart: those of a watch, and all others as one."""

MOST_EVENTS = 100
"""Rows with a finding that are kept."""

MOST_LOSSES = 3
"""Losses that are told apart; with more sorts of rows, as of a mixture of experts, it is one."""

SUFFIXES = (".jsonl", ".ndjson")
"""Of the names of logs."""

LONGEST = 2**20
"""Bytes of a line; one of 200 parts has 28,000."""

_ORDER = ("not reached", "none", "zero", "finite", "non-finite")
_ABSENT = GradientInfo("not reached")


_TERM = "term "
"""With what the name of a term begins, as that of no part does."""


def columns(row: Row) -> dict[str, ModuleRow | TermRow]:
    """What a row tells of: the parts of the model, and the terms of the loss, each so named."""
    return {**row.modules, **{_TERM + name: term for name, term in row.terms.items()}}


def told(row: ModuleRow | TermRow) -> GradientInfo:
    """The gradients of a part as one."""
    norm = row.norm
    bad, none = (row.nonfinite, row.none) if isinstance(row, ModuleRow) else (0, 0)
    if bad or (norm is not None and not math.isfinite(norm)):
        return GradientInfo("non-finite", norm)
    if norm is None:
        return GradientInfo("none" if none else "not reached")
    return GradientInfo("finite" if norm > 0 else "zero", norm)


def _louder(one: GradientInfo, other: GradientInfo) -> GradientInfo:
    return max(one, other, key=lambda info: (_ORDER.index(info.state), float(info.norm or 0)))


@dataclass
class Span:
    """Rows in a row of which the loudest is shown: what is not finite, else the largest norm.

    ``lowest`` and ``highest`` are of the losses that are finite; ``is_lost``: one is not.
    """

    first: int
    last: int
    whole: GradientInfo
    parts: dict[str, GradientInfo]
    lowest: float | None = None
    highest: float | None = None
    is_lost: bool = False

    @classmethod
    def of(cls, row: Row) -> Span:
        """One row."""
        parts = {name: told(part) for name, part in columns(row).items()}
        loss = row.loss
        is_lost = loss is not None and not math.isfinite(loss)
        loss = None if is_lost else loss
        return cls(row.step, row.step, told(row), parts, loss, loss, is_lost)

    def add(self, later: Span) -> None:
        """Let it stand for the rows of a later one as well."""
        self.last = later.last
        self.whole = _louder(self.whole, later.whole)
        for name, info in later.parts.items():
            self.parts[name] = _louder(self.parts.get(name, _ABSENT), info)
        losses = [self.lowest, later.lowest, self.highest, later.highest]
        known = [one for one in losses if one is not None]
        self.lowest, self.highest = min(known, default=None), max(known, default=None)
        self.is_lost |= later.is_lost


@dataclass
class History:
    """What is known of a training: its rows, and of how they began and ended.

    ``most``: spans there are at most; each stands for ``each`` rows.  ``names`` are the parts as a
    set, in the order of the model; ``bad`` the step of the first row that is not finite, and the
    parts that are not.  ``losses`` has, by the parts that a row brings a gradient, the first and
    the last loss: the networks of a GAN have one each.
    """

    most: int = 1_000
    title: str = ""
    each: int = 1
    rows: int = 0
    skipped: int = 0
    last: Row | None = None
    bad: tuple[int, tuple[str, ...]] | None = None
    names: dict[str, None] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    losses: dict[tuple[str, ...], tuple[float, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def _note_loss(self, row: Row) -> None:
        reached = tuple(name for name, part in row.modules.items() if part.norm is not None)
        if row.loss is not None and (reached in self.losses or len(self.losses) <= MOST_LOSSES):
            first, _ = self.losses.get(reached, (row.loss, row.loss))
            self.losses[reached] = first, row.loss

    def put(self, row: Row) -> None:
        """One more row."""
        if not row.modules.keys() <= self.names.keys() or row.terms:
            new = [name for name in columns(row) if name not in self.names]
            self.names.update(dict.fromkeys(new[: MOST_PARTS - len(self.names)]))
            known = {name: one for name, one in row.modules.items() if name in self.names}
            terms = {name: one for name, one in row.terms.items() if _TERM + name in self.names}
            row = msgspec.structs.replace(row, modules=known, terms=terms)
        self._note_loss(row)
        span = Span.of(row)
        if self.rows % self.each:
            self.spans[-1].add(span)
        else:
            self.spans.append(span)
        if len(self.spans) > self.most:
            for one, later in zip(self.spans[::2], self.spans[1::2], strict=False):
                one.add(later)
            self.spans, self.each = self.spans[::2], self.each * 2
        self.rows += 1
        self.last = row
        self.skipped += row.skipped
        if self.bad is None:
            named = [name for name, info in span.parts.items() if info.state == "non-finite"]
            is_bad = bool(named) or span.whole.state == "non-finite"
            self.bad = (row.step, tuple(named)) if is_bad else None
        self._note_events(row)

    def _note_events(self, row: Row) -> None:
        found = [row] if row.trouble or row.finding or row.report else []
        of_ranks = said((int(rank), one) for rank, one in row.ranks.items() if rank.isdigit())
        for (step, words), (ranks, report) in of_ranks.items():
            told = f"{ranked(ranks)}: {words}"
            found.append(Row(step=step, call=row.call, finding=told, report=report))
        self.events += found[: MOST_EVENTS - len(self.events)]

    def told_events(self) -> list[tuple[Row, str]]:
        """What has happened, in words."""
        words = ((row, row.finding or row.trouble or "a report was kept") for row in self.events)
        return [(row, f"step {row.step:,}: {word}") for row, word in words]

    @property
    def sizes(self) -> str:
        """Return how many parts are known, and terms, in words."""
        terms = sum(name.startswith(_TERM) for name in self.names)
        parts = count(len(self.names) - terms, "part")
        return f"{parts} · {count(terms, 'term')}" if terms else parts

    def of(self, name: str) -> list[GradientInfo]:
        """What is known of one part, span by span."""
        return [span.parts.get(name, _ABSENT) for span in self.spans]


def is_log(path: str) -> bool:
    """Whether a file is the log of a training, and no report."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(HEAD)) == HEAD or path.endswith(SUFFIXES)
    except (OSError, ValueError):
        return False


def load(path: str, max_size: int) -> History:
    """The training whose log this is.

    Raises:
        ReportError: it is too large, of another layout, or broken before its last line.
    """
    history = History(title=Path(path).name)
    try:
        with Path(path).open("rb") as file:
            if Path(path).stat().st_size > max_size:
                raise ReportError(
                    f"{path} is larger than {max_size:,} bytes", "allow more: --max-size 4GiB"
                )
            _check(file.readline(LONGEST), path)
            number = 1
            while line := file.readline(LONGEST):
                number += 1
                try:
                    history.put(row_of(line))
                except (ValueError, RecursionError) as error:
                    if file.read(1) or line.endswith(b"\n"):
                        what = f"{path}: line {number} is no row of a log: {error}"
                        raise ReportError(what, "watch the training again") from None
                    history.notes.append(f"line {number}, the last one, was not written to its end")
    except OSError as error:
        what = f"cannot read {path}: {error.strerror or error}"
        raise ReportError(what, "name a file written with gradscope watch -o") from None
    return history


def _check(line: bytes, path: str) -> None:
    if not line:
        what = f"{path} is empty: no training has written to it"
        raise ReportError(what, f"write one: gradscope watch train.py -o {path}")
    try:
        layout = msgspec.json.decode(line, type=LogHead).layout
    except (msgspec.MsgspecError, RecursionError) as error:
        what = f"{path}: its first line is broken: {error}"
        raise ReportError(what, "watch the training again") from None
    if layout != LAYOUT:
        what = f"{path} has layout {layout}; this gradscope reads {LAYOUT}"
        raise ReportError(what, "show it with the gradscope that wrote it")
