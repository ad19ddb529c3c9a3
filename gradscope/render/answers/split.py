"""A gradient taken apart, as text: its pieces, and what each brings to each module or parameter.

Must not know how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.model.studies import Combined, SplitPiece
from gradscope.render.answers.answer import GraphAnswer, held
from gradscope.render.drawing.split_groups import by_size, leaf_groups, percent, sentences, signed
from gradscope.render.options import Options
from gradscope.render.words.numbers import number
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import cells
from gradscope.words import count, listed, one_line, option

ROWS = 20
"""Rows of a table; all are shown where that is asked for."""

WITH_NORMS = 3
"""Terms up to which each has its norm beside its share."""

NAME, SHARE = 32, 12
"""Cells of a line that what is beside the pieces, and each of these, take."""

LONGEST = 14
"""Cells of a piece's name up to which it stands above its column, and not its number."""

SLACK = 0.05
"""By so much the sum of the pieces may differ from what backward brought, for rounding alone."""


class _SplitWriter(GraphAnswer):
    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(report, options)
        split = self.split = held(report.split, option("by", "term"))
        folding = options.folding
        self.groups = leaf_groups(report, split, folding.depth, folding.all)
        self.whole = Combined(split.leaves)
        self.names = [visible(one_line(piece.name)) for piece in split.pieces]
        is_long = max(map(cells, self.names)) > LONGEST
        self.are_numbered = split.kind == "term" and is_long

    def lines(self) -> Iterator[str]:
        """What was taken apart, what stands out, the pieces, the parameters."""
        yield self.fitted(self._title(), "bold")
        told = sentences(self.report, self.split, self.groups) if self.split.leaves else ""
        yield from self.wrapped(visible(told)) if told else ()
        for remark in (*self._altered(), *self.report.notes):
            yield from self.wrapped(visible(remark), "dim")
        if not self.split.leaves:
            return
        yield ""
        yield from self._pieces()
        if self.split.kind == "term" and len(self.split.pieces) > 1:
            yield ""
            yield from self._parameters()

    def _title(self) -> str:
        label = listed(one_line(root.label) for root in self.report.graph.roots if root.label)
        split = self.split
        what = count(sum(not piece.rest for piece in split.pieces), split.kind)
        told = f"the gradient in {what}" if split.kind != "output" else f"the Jacobian, {what}"
        told += f" of {split.total:,}" if split.total > len(split.pieces) else ""
        told += f": rows of {listed(split.rows)}" if split.rows else ""
        words = (self.report.meta.target, label, told)
        return " · ".join(visible(word) for word in words if word)

    def _altered(self) -> Iterator[str]:
        """Where backward brought something else than the pieces add up to."""
        if not self.report.passes or self.split.kind == "output":
            return
        largest = max((max(Combined([leaf]).norms) for leaf in self.split.leaves), default=0.0)
        for leaf in self.split.leaves:
            together = Combined([leaf])
            summed, brought = together.norm, self.report.passes[0].brought(leaf.leaf).norm
            if summed is None or brought is None:
                continue
            # Of what is small beside all others, as of a bias before a batch norm, all is rounding.
            size = max(float(brought), *together.norms)
            if size > SLACK * largest and abs(float(brought) - summed) > SLACK * size:
                names = self.report.graph.leaves[leaf.leaf].names
                yield (
                    f"the pieces add up to ‖g‖ {number(summed)} in {next(iter(names), 'a leaf')}, "
                    f"and backward brought {number(brought)}: the program changes gradients on "
                    "their way, in a hook, which runs for no piece, or in a backward of its own"
                )
                return

    # ------------------------------------------------------------------ the pieces

    def _pieces(self) -> Iterator[str]:
        order = self._order()
        is_term = self.split.kind == "term"
        shown = order if is_term else self.options.chosen(order, ROWS)
        columns = [
            Column(self.split.kind, narrowest=12, comfort=24),
            Column("adds" if is_term else "value", right=True, drop=2),
            Column("‖g‖", right=True),
            Column("" if self.split.kind == "output" else "share", right=True),
            *([] if is_term else [Column("largest in", narrowest=12, drop=3)]),
            Column("source", drop=1),
        ]
        yield from self.table(columns, map(self._piece, shown))
        yield from self.more(len(order) - len(shown))

    def _order(self) -> list[int]:
        """The pieces as they are listed: a few as the program has them, of many the largest
        first."""
        known = range(len(self.split.pieces))
        if len(known) <= WITH_NORMS or self.split.kind == "output":
            return [*known]
        return sorted(known, key=lambda piece: by_size(self.whole.norms[piece]))

    def _piece(self, position: int) -> list[Cell]:
        split = self.split
        piece = split.pieces[position]
        place = f"{position + 1} " if self.are_numbered else ""
        return [
            (Part(place, "dim", cut="never"), Part(self.names[position], "cyan")),
            "" if piece.value is None else number(piece.value),
            number(self.whole.norms[position]),
            "" if split.kind == "output" else percent(self.whole.shares[position]),
            *([] if split.kind == "term" else [Part(self._largest(position), cut="start")]),
            Part(self._source(piece), "dim"),
        ]

    def _largest(self, position: int) -> str:
        """Where a piece brings most."""
        norms = [(one.norms[position], name) for name, one in self.groups.items()]
        norm, name = min(norms, key=lambda one: by_size(one[0]))
        return name if norm and len(norms) > 1 else ""

    def _source(self, piece: SplitPiece) -> str:
        lines = set(filter(None, map(self.source, piece.nodes)))
        return lines.pop() if len(lines) == 1 else ""

    # ------------------------------------------------------------------ the parameters

    def _parameters(self) -> Iterator[str]:
        order = self._order()
        most = max((self.options.width - NAME - SHARE) // SHARE, 2)
        shown = order if len(order) <= WITH_NORMS else order[:most]
        left = self.options.chosen(self._sorted(), ROWS)
        yield from self.table(self._columns(shown), [self._row(one, shown) for one in left])
        yield from self.more(len(self.groups) - len(left))
        if len(shown) < len(order):
            more = count(len(order) - len(shown), f"more {self.split.kind}")
            yield self.line(f"… {more} without a column: {option('width', 'N')}", "dim")

    def _sorted(self) -> Sequence[str]:
        if len(self.groups) <= ROWS and not self.options.top:
            return [*self.groups]
        return sorted(self.groups, key=lambda name: by_size(sum(self.groups[name].norms)))

    def _columns(self, shown: Sequence[int]) -> list[Column]:
        titles = self.names
        if self.are_numbered:
            titles = [f"{self.split.kind} {place + 1}" for place in range(len(titles))]
        return [
            Column("parameter" if self.options.folding.all else "module", narrowest=12),
            *(Column(titles[piece], right=True) for piece in shown),
            Column("cosine" if len(titles) == 2 else "lowest cosine", right=True, drop=1),
        ]

    def _row(self, name: str, shown: Sequence[int]) -> list[Cell]:
        together = self.groups[name]
        shares = together.shares
        found: list[Cell] = [Part(name, cut="start")]
        for piece in shown:
            norm = together.norms[piece]
            told = percent(shares[piece]) if norm else ""
            size = f"{number(norm)} " if len(shown) <= WITH_NORMS else ""
            found.append((Part(size), Part(f"{told:>5}", "bold" if shares[piece] > 0.5 else "")))
        return [*found, self._lowest(together)]

    def _lowest(self, together: Combined) -> str:
        found = together.opposed()
        if found is None:
            return ""
        cosine, *pair = found
        several = len(self.names) > 2 and self.are_numbered
        whose = f" ({', '.join(str(one + 1) for one in pair)})" if several else ""
        return f"{signed(cosine)}{whose}"


render = _SplitWriter.render
