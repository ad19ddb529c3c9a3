"""The table of parameters on all ranks: what each rank's own backward brought, and ``.grad``.

For few ranks a column each; for many the smallest, the largest, and those that are odd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradscope.model.ranks import FEW, AcrossRanks, AtRank, Ranks
from gradscope.model.report import GradientInfo
from gradscope.render.drawing.cells import BAD_INK, size_cell
from gradscope.render.drawing.spread import extremes, odd_ranks, on
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, Table
from gradscope.render.words.text import Glyphs
from gradscope.words import count

ODD_INK = "yellow"

_NAME = Column("parameter", narrowest=12, comfort=24)
_SHAPE = Column("shape", drop=1)
_AFTER = Column("‖.grad‖", right=True, drop=3)
_REMARK = Column("differs", drop=2, narrowest=12, comfort=24)


class RankTable:
    """The parameters of all ranks, in the order in which they are given."""

    def __init__(
        self, ranks: Ranks, options: Options, glyphs: Glyphs, order: Sequence[str] = ()
    ) -> None:
        """``order``: names that come first, in this order."""
        place = {name: index for index, name in enumerate(order)}
        self._rows = sorted(ranks.parameters, key=lambda one: place.get(one.name, len(place)))
        self._ranks = ranks
        self._options = options
        self._glyphs = glyphs

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
        columns = [
            replace(column, title=self._glyphs.text(column.title)) for column in self._columns()
        ]
        table = Table(columns, self._options.width, self._glyphs, self._options.color)
        lines = list(table.lines([self._cells(one) for one in shown]))
        left = len(self._rows) - len(shown)
        if left:
            lines.append(self._glyphs.text(f"… {count(left, 'more parameter')}: -o FILE.json"))
        return lines

    def _columns(self) -> list[Column]:
        if self._ranks.size <= FEW:
            of_ranks = [Column(f"‖g‖ rank {rank}", right=True) for rank in range(self._ranks.size)]
        else:
            of_ranks = [Column("‖g‖ smallest", right=True), Column("largest", right=True)]
        return [_NAME, _SHAPE, *of_ranks, _AFTER, _REMARK]

    def _cells(self, one: AcrossRanks) -> list[Cell]:
        glyphs = self._glyphs
        remark = self._remark(one)
        return [
            (
                Part(f"{glyphs.leaf} ", "green", "never"),
                Part(glyphs.text(one.name), "green", "start"),
            ),
            (Part(numbers.shape(one.shape)),),
            *(self._each(one) if self._ranks.size <= FEW else self._extremes(one)),
            self._after(one),
            (Part(glyphs.text(remark), ODD_INK),),
        ]

    def _after(self, one: AcrossRanks) -> Cell:
        if one.whole is not None:
            return (Part(numbers.number(one.whole)),)
        if len(one.after) > 1:
            return (Part("differs", ODD_INK),)
        return self._size(one.after[0].gradient) if one.after else (Part(""),)

    def _each(self, one: AcrossRanks) -> list[Cell]:
        known = {at.rank: at.gradient for at in one.local}
        # Of a rank that has not told, or of another call, nothing is known.
        nothing = dict.fromkeys(one.missing, self._glyphs.silent)
        return [
            self._size(known[rank]) if rank in known else (Part(nothing.get(rank, "?")),)
            for rank in range(self._ranks.size)
        ]

    def _extremes(self, one: AcrossRanks) -> list[Cell]:
        found = extremes(one)
        return [self._at(found[0]), self._at(found[1])] if found else [(Part(""),), (Part(""),)]

    def _at(self, at: AtRank) -> Cell:
        return (*self._size(at.gradient), Part(f" ({at.rank})", "dim"))

    def _size(self, info: GradientInfo) -> Cell:
        return size_cell(info, self._glyphs, BAD_INK if info.state == "non-finite" else "")

    def _remark(self, one: AcrossRanks) -> str:
        words = [odd_ranks(one, self._ranks)]
        if one.weights:
            words.append(f"values on {on([rank for rank, _ in one.weights])}")
        return ", ".join(filter(None, words))
