"""What a check says of cuts in the whole program, as text: the slope where they are no constants,
beside the one of backward, and those by which that comes.

Must not know how it was measured."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.model.studies import CutShare, MovedCuts, MovedSlope
from gradscope.render.answers.answer import COMPARED, GraphAnswer, compared
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part
from gradscope.words import count, listed, one_line

CUTS = (
    Column("cut", narrowest=12, comfort=24, essential=True),
    Column("why", drop=2),
    Column("share", right=True),
    Column("leaves before it", drop=1, narrowest=10, comfort=16),
    Column("source"),
)

LEAVES = (Column("through cuts", narrowest=12, comfort=24), *COMPARED)

NAMED = 2
"""Leaves that are named in a row."""

MEANT = (
    "through cuts: what was computed without history moves with the leaves, as far as it could be "
    "followed. Backward holds it fixed, as is often meant: no derivative is wrong by it"
)


class MovedCutsWriter(GraphAnswer):
    """Writes them."""

    def __init__(self, report: Report, cuts: MovedCuts, options: Options) -> None:
        super().__init__(report, options)
        self._cuts = cuts

    def lines(self) -> Iterator[str]:
        """Everything."""
        if self._cuts.together is not None:
            yield from self._slopes(self._cuts.together)
            shares = sorted(self._cuts.shares, key=lambda one: -abs(float(one.share)))
            yield from self.table(CUTS, (row for one in shares for row in self._rows(one)))
            yield from self.wrapped(MEANT, "dim")
        if self._cuts.reason:
            yield from self.wrapped(f"cuts: {visible(self._cuts.reason)}", "dim")

    def _slopes(self, together: MovedSlope) -> Iterator[str]:
        each = sorted(self._cuts.leaves, key=lambda one: -abs(float(one.error)))
        shown = each[: self.budget(len(each))]
        # Of one leaf alone both are the same.
        first = [] if self._cuts.moved == len(each) == 1 else [together]
        yield from self.table(LEAVES, map(self._slope, (*first, *shown)))
        yield from self.more(len(each) - len(shown), "leaf")

    def _slope(self, one: MovedSlope) -> list[Cell]:
        name = visible(one.name) or f"all {count(self._cuts.moved, 'leaf')} together"
        is_seen = one.leaf is not None or not one.name
        return [name, *compared(one.analytic if is_seen else None, one.numeric, one.error)]

    def _rows(self, one: CutShare) -> Iterator[list[Cell]]:
        """A row for each cut; the share with the first of those that were let go together."""
        share, names = numbers.number(one.share), listed(map(visible, one.leaves), NAMED)
        for cut in one.cuts:
            expression = Part(visible(one_line(cut.expression)), "cyan")
            file = self.files.get(cut.file, cut.file)
            source = Part(f"{visible(file)}:{cut.line}" if file else "", "dim")
            yield [expression, visible(cut.why), share, Part(names, "bold"), source]
            share, names = "together", ""


def matter(cuts: MovedCuts) -> str:
    """``2 cuts matter``."""
    many = len({cut for one in cuts.shares for cut in one.cuts})
    return f"{count(many, 'cut')} {'matters' if many == 1 else 'matter'}"
