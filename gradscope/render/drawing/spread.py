"""How far the gradients of a parameter are apart over ranks, in words and as a table of what each
rank's own backward brought, and ``.grad``: for few ranks a column each; for many the smallest, the
largest, and those that are odd.

Must not know of any one format; texts are not escaped for markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradscope.model.ranks import FEW, AcrossRanks, AtRank, Ranks
from gradscope.model.report import GradientInfo
from gradscope.render.drawing.scale import BAD_INK, size_cell
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, Writer
from gradscope.words import ranked

CLOSE = 1e-5
"""Relative difference of two norms up to which they are not told apart."""


def why_not(ranks: Ranks, rank: int) -> str:
    """Why the gradients of a rank on the whole graph are not in a report."""
    if rank in ranks.silent:
        return "it did not tell what it saw"
    if rank in ranks.other_calls:
        return "it shows another backward call"
    if rank in ranks.other_graphs:
        return "it made another graph"
    return "this report does not hold its gradients"


def extremes(one: AcrossRanks) -> tuple[AtRank, AtRank] | None:
    """The ranks with the smallest and with the largest gradient of a parameter; None where no rank
    has one that is finite."""
    sized = sorted(
        (at for at in one.local if at.gradient.state in ("finite", "zero")),
        key=lambda at: float(at.gradient.norm or 0.0),
    )
    return (sized[0], sized[-1]) if sized else None


def spread(one: AcrossRanks, ranks: Ranks) -> str:
    """``‖g‖ 1.2 … 8.4 over 2 ranks``, or what is odd on some; "" where the ranks agree."""
    odd = odd_ranks(one, ranks)
    found = extremes(one)
    if found is None:
        return odd
    low, high = (float(at.gradient.norm or 0.0) for at in found)
    if high - low <= CLOSE * high:
        return odd
    words = f"‖g‖ {numbers.number(low)} … {numbers.number(high)} over {ranks.size:,} ranks"
    return f"{words}, {odd}" if odd else words


def odd_ranks(one: AcrossRanks, ranks: Ranks) -> str:
    """On which ranks the gradient is not finite, zero or missing, where it is not so on all."""
    words = []
    for state, said in (("non-finite", "not finite"), ("zero", "zero"), ("none", "no grad")):
        found = [at.rank for at in one.local if at.gradient.state == state]
        if found and len(found) < ranks.size:
            words.append(f"{said} on {on(found)}")
    if one.missing:
        words.append(f"not in the graph of {on(one.missing)}")
    return ", ".join(words)


def on(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 1, 2``."""
    return ranked(ranks, ", ".join)


ODD_INK = "yellow"

_NAME = Column("parameter", narrowest=12, comfort=24)
_SHAPE = Column("shape", drop=1)
_AFTER = Column("‖.grad‖", right=True, drop=3)
_REMARK = Column("differs", drop=2, narrowest=12, comfort=24)


class RankTable(Writer):
    """The parameters of all ranks, in the order in which they are given."""

    def __init__(self, ranks: Ranks, options: Options, order: Sequence[str] = ()) -> None:
        """``order``: names that come first, in this order."""
        super().__init__(options)
        place = {name: index for index, name in enumerate(order)}
        self._rows = sorted(ranks.parameters, key=lambda one: place.get(one.name, len(place)))
        self._ranks = ranks

    def __len__(self) -> int:
        return len(self._rows)

    def lines(self, most: int) -> list[str]:
        """The table in at most ``most`` lines, with a count of what was left out.

        Where not all parameters fit, those that differ between ranks in kind come first.
        """
        shown = self._rows
        if len(shown) + 1 > most:
            odd = [one for one in shown if self._remark(one)]
            even = [one for one in shown if not self._remark(one)]
            shown = [*odd, *even][: max(most - 2, 1)]
        lines = list(self.table(self._columns(), map(self._cells, shown)))
        left = len(self._rows) - len(shown)
        return [*lines, *self.more(left, "parameter", "-o FILE.json")]

    def _columns(self) -> list[Column]:
        if self._ranks.size <= FEW:
            of_ranks = [Column(f"‖g‖ rank {rank}", right=True) for rank in range(self._ranks.size)]
        else:
            of_ranks = [Column("‖g‖ smallest", right=True), Column("largest", right=True)]
        return [_NAME, _SHAPE, *of_ranks, _AFTER, _REMARK]

    def _cells(self, one: AcrossRanks) -> list[Cell]:
        return [
            (Part(f"{self.glyphs.leaf} ", "green", "never"), Part(one.name, "green", "start")),
            numbers.shape(one.shape),
            *(self._each(one) if self._ranks.size <= FEW else self._extremes(one)),
            self._after(one),
            Part(self._remark(one), ODD_INK),
        ]

    def _after(self, one: AcrossRanks) -> Cell:
        if one.whole is not None:
            return numbers.number(one.whole)
        if len(one.after) > 1:
            return Part("differs", ODD_INK)
        return self._size(one.after[0].gradient) if one.after else ""

    def _each(self, one: AcrossRanks) -> list[Cell]:
        known = {at.rank: at.gradient for at in one.local}
        # Of a rank that has not told, or of another call, nothing is known.
        nothing = dict.fromkeys(one.missing, self.glyphs.silent)
        return [
            self._size(known[rank]) if rank in known else nothing.get(rank, "?")
            for rank in range(self._ranks.size)
        ]

    def _extremes(self, one: AcrossRanks) -> list[Cell]:
        found = extremes(one)
        return [self._at(found[0]), self._at(found[1])] if found else ["", ""]

    def _at(self, at: AtRank) -> Cell:
        return (self._size(at.gradient), Part(f" ({at.rank})", "dim"))

    def _size(self, info: GradientInfo) -> Part:
        return size_cell(info, self.glyphs, BAD_INK if info.state == "non-finite" else "")

    def _remark(self, one: AcrossRanks) -> str:
        words = [odd_ranks(one, self._ranks)]
        if one.weights:
            words.append(f"values on {on([rank for rank, _ in one.weights])}")
        return ", ".join(filter(None, words))
