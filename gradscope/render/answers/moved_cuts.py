"""What backward does not see of a program, as text: the slope where cuts are no constants, beside
the one of backward, and the cuts by which that comes.

Must not know how it was measured."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.model.studies import CutShare, MovedCuts, MovedSlope
from gradscope.render.answers.answer import GraphAnswer, compared
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

LEAVES = (
    Column("through cuts", narrowest=12, comfort=24),
    Column("backward", right=True),
    Column("differences", right=True),
    Column("off by", right=True),
)

NAMED = 2
"""Leaves that are named in a row."""

MEANT = "what is cut off is held fixed by backward, as is often meant: no derivative is wrong by it"


class MovedCutsWriter(GraphAnswer):
    """Writes them."""

    def __init__(self, report: Report, cuts: MovedCuts, options: Options) -> None:
        super().__init__(report, options)
        self._cuts = cuts

    def lines(self) -> Iterator[str]:
        """Everything."""
        if self._cuts.together is not None:
            yield from self.wrapped(self._sentence(self._cuts.together))
            shares = sorted(self._cuts.shares, key=lambda one: -abs(float(one.share)))
            yield from self.table(CUTS, (row for one in shares for row in self._rows(one)))
            yield from self._leaves()
            yield from self.wrapped(MEANT, "dim")
        if self._cuts.reason:
            yield from self.wrapped(f"cuts: {visible(self._cuts.reason)}", "dim")

    def _sentence(self, slope: MovedSlope) -> str:
        along = f"all {self._cuts.moved:,} leaves together"
        if self._cuts.moved == 1:
            along = listed(visible(name) for one in self._cuts.shares for name in one.leaves)
        by, says = numbers.number(slope.numeric), numbers.number(slope.analytic)
        return f"cuts: along {along} the loss changes by {by} per unit, and backward says {says}"

    def _rows(self, one: CutShare) -> Iterator[list[Cell]]:
        """A row for each cut; the share with the first of those that were let go together."""
        share, names = numbers.number(one.share), listed(map(visible, one.leaves), NAMED)
        for cut in one.cuts:
            expression = Part(visible(one_line(cut.expression)), "cyan")
            file = self.files.get(cut.file, cut.file)
            source = Part(f"{visible(file)}:{cut.line}" if file else "", "dim")
            yield [expression, visible(cut.why), share, Part(names, "bold"), source]
            share, names = "together", ""

    def _leaves(self) -> Iterator[str]:
        # Of one leaf the sentence says all.
        found = sorted(self._cuts.leaves, key=lambda one: -abs(float(one.error)))
        found = found if self._cuts.moved > 1 else []
        shown = found[: self.budget(len(found))]
        if shown:
            yield from self.table(LEAVES, map(self._leaf, shown))
            yield from self.more(len(found) - len(shown), "leaf")

    def _leaf(self, one: MovedSlope) -> list[Cell]:
        name = visible(one.name) if one.leaf is None else self.leaf(one.leaf)
        analytic = None if one.leaf is None else one.analytic
        return [name, *compared(analytic, one.numeric, one.error)]


def matter(cuts: MovedCuts) -> str:
    """``2 cuts matter``."""
    many = len({cut for one in cuts.shares for cut in one.cuts})
    return f"{count(many, 'cut')} {'matters' if many == 1 else 'matter'}"
