"""What depends on what, as text: what was measured in sentences, and a map with a sign a cell.

Must not know how it was found."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import groupby, pairwise

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.model.studies import AxisSide, Pair, Pattern
from gradscope.render.answers.answer import GraphAnswer, held
from gradscope.render.drawing.scale import STEPS
from gradscope.render.drawing.split_groups import place_of
from gradscope.render.options import Options
from gradscope.render.words.numbers import number, shape
from gradscope.words import count, either, option

ROWS, CELLS = 32, 64
"""Rows of a map, all of which are shown where that is asked for, and cells of a row."""

MOST_RUNS = 4
"""Stretches of indices that are named."""

SHADES, PLAIN = "█▓▒░~·✖", "#*+-~.!"
"""Signs of a cell, with and without Unicode: three decades below the largest of its row, what is
still less, what may be rounding, 0, and what is not finite."""

COLORS = (STEPS[7], STEPS[4], STEPS[2], STEPS[0], "dim", "dim", "magenta")


class _DependsWriter(GraphAnswer):
    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(report, options)
        way = either("gradscope depends", "gradscope.depends(root, on)")
        self.found = held(report.dependence, way)
        self.pattern = Pattern(self.found)
        self.signs = PLAIN if self.glyphs.ascii else SHADES

    def lines(self) -> Iterator[str]:
        """What was asked, what was measured in words, the map."""
        yield from self.wrapped(visible(self._title()), "bold")
        for sentence in self._sentences():
            yield from self.wrapped(visible(sentence))
        for remark in self.report.notes:
            yield from self.wrapped(visible(remark), "dim")
        if self.pattern.pairs or self.pattern.bad or self.pattern.small:
            yield ""
            yield from self._map()

    def _title(self) -> str:
        of, on = self.found.of, self.found.on
        axes = f"axis {on.axis}" if of.axis in (on.axis, None) else f"axes {of.axis} and {on.axis}"
        if self.found.chosen:
            axes += f", the first that fits ({option('axis', 'N')} chooses)"
        asked = f"does {of.name} {shape(of.shape)} depend on {on.name} {shape(on.shape)}?"
        return " · ".join(filter(None, (self.report.meta.target, asked, axes)))

    # ------------------------------------------------------------------ in words

    def _sentences(self) -> Iterator[str]:
        found, pattern, of, on = self.found, self.pattern, self.found.of, self.found.on
        if pattern.bad:
            to = _some(on, {pair.column for pair in pattern.bad})
            rows = _some(of, {pair.row for pair in pattern.bad})
            yield f"NaN or infinity comes to {to} from {rows}"
        known: dict[int, list[int]] = {row: [] for row in found.rows}
        for pair in (*pattern.pairs, *pattern.bad):
            known[pair.row].append(pair.column)
        silent = [row for row in known if not known[row]]
        none = "nothing but what is marked ~" if pattern.small else "no gradient"
        if silent:
            yield f"{none} comes to {on.name} from {_some(of, silent)}"
        if pattern.pairs:
            asked = " that was asked" if len(found.rows) < of.size else ""
            each = f"each {'other ' if silent else ''}{of.at('i')}{asked} sends a gradient to"
            each = f"where it is finite, {each}" if pattern.bad else each
            yield self._order(each) if pattern.is_square else self._reach(each, known)
        reached = {column for columns in known.values() for column in columns}
        left = [column for column in range(on.size) if column not in reached]
        if reached and left:
            none += " of these" if len(found.rows) < of.size else ""
            yield f"{none} comes to {_some(on, left)}; to each other {on.at('j')} a gradient does"
        if pattern.small:
            share = f"up to {number(pattern.small)} of the largest of its row"
            yield f"what is marked ~, {share}, may be rounding: it is not counted as a gradient"
        if found.crossing is not None:
            which, still = ("later", "at no later") if pattern.later else ("earlier", "at its own")
            at = place_of(self.report, found.crossing.node)
            told = f"first comes to {which} indices at {at}"
            if not found.crossing.exact:
                told = f"is still {still} index at the result of {at}, and comes to {which} ones "
                told += f"between there and {on.name}"
            yield f"the gradient of {of.at(found.crossing.row)} {told}"
        if len(found.rows) < found.of.size:
            yield f"asked at {len(found.rows):,} of {found.of.size:,} indices, evenly spread"

    def _reach(self, each: str, known: dict[int, list[int]]) -> str:
        """Of axes of two sizes, where no index is that of the other."""
        of, on = self.found.of, self.found.on
        if of.axis is None:
            number = len(known[0])
            every = f"{number:,} of {on.size:,}" if number < on.size else "every"
            return f"{of.name} sends a gradient to {every} {on.at('j')}"
        if len(self.pattern.pairs) == sum(map(len, self.found.norms)):
            return f"{each} every {on.at('j')}"
        some = [f"{of.at(row)} to {_some(on, known[row])}" for row in known if known[row]]
        such = ", such as" if some[3:] else ":"
        most = max(map(len, known.values()))
        return f"{each} at most {most:,} {on.at('j')} of {on.size:,}{such} {', '.join(some[:3])}"

    def _order(self, each: str) -> str:
        """Of axes of one size: whether an index depends on its own, on earlier or later ones."""
        on, pattern = self.found.on, self.pattern
        if not (pattern.later or pattern.earlier):
            return f"{each} {on.at('i')} alone"
        if not pattern.later:
            own = f"{on.at('i')} and " if len(pattern.pairs) > len(pattern.earlier) else ""
            return f"{each} no later {on.at('j')}, only to {own}earlier ones"
        if len(pattern.pairs) == sum(map(len, self.found.norms)):
            told = self._told(max(pattern.later + pattern.earlier))
            return f"{each} every {on.at('j')}; most of all at another index: {told}"
        rows = len({pair.row for pair in pattern.later})
        farthest = max(pair.column - pair.row for pair in pattern.later)
        first = min(pattern.later, key=lambda pair: pair[1:])
        largest = max(pattern.later)
        most = "" if largest == first else f"; most of all {self._told(largest)}"
        none = "" if pattern.earlier else "; none sends one to an earlier one"
        of_all = f"{rows:,} of {len(self.found.rows):,} do, up to {farthest:,} later"
        return f"{self._told(first)}, a later one, as {of_all}{most}{none}"

    def _told(self, pair: Pair) -> str:
        of, on = self.found.of.at(pair.row), self.found.on.at(pair.column)
        return f"{of} depends on {on} (‖g‖ {number(pair.norm)})"

    # ------------------------------------------------------------------ the map

    def _map(self) -> Iterator[str]:
        found, is_all = self.found, self.options.folding.all
        shown = _parts(len(found.rows), len(found.rows) if is_all else ROWS)
        has_axis = found.of.axis is not None
        rows = {start: str(found.rows[start]) if has_axis else "" for start, _ in shown}
        margin = max(map(len, rows.values())) + 2
        room = max(min(self.options.width - margin, CELLS), 8)
        parts = _parts(found.on.size, room)
        wide = 2 if 2 * len(parts) <= room else 1
        last = f"{found.on.size - 1:>{wide * len(parts) - 1}}" if parts[1:] else ""
        which = f"rows: {found.of.at('i')}; " if has_axis else ""
        yield self.line(f"{which}columns: {found.on.at('j')}", "dim")
        yield self.line(f"{'':{margin}}0{last}", "dim")
        for row, label in rows.items():
            norms = [*map(float, found.norms[row])]
            steps = [self._step(norms, *part) for part in parts]
            cells = (self.paint(self.signs[step] * wide, COLORS[step]) for step in steps)
            yield self.line(f"{label:>{margin - 2}}  ", "dim") + "".join(cells)
        told = (">10 %", ">1 %", ">0.1 %", "less, of the largest of its row;", "rounding?", "none")
        legend = " ".join(map(" ".join, zip(self.signs, told, strict=False)))
        each = max(stop - start for start, stop in parts)
        legend += f"; a cell is the largest of up to {each:,} indices" if each > 1 else ""
        more = f"; {len(rows):,} of {len(found.rows):,} rows: {option('all')}"
        yield from self.wrapped(legend + (more if len(rows) < len(found.rows) else ""), "dim")

    def _step(self, norms: list[float], start: int, stop: int) -> int:
        """Which sign a cell has."""
        if not all(map(math.isfinite, norms[start:stop])):
            return -1
        norm, largest = max(norms[start:stop]), max(filter(math.isfinite, norms))
        if not norm > float(self.found.rounding) >= 0:
            return 4 if norm else 5
        return min(max(math.ceil(math.log10(largest) - math.log10(norm)) - 1, 0), 3)


render = _DependsWriter.render


def _some(side: AxisSide, indices: Collection[int]) -> str:
    """Some indices of a tensor: ``x[:, 3], x[:, 12:16] and 9 more indices``."""
    runs = groupby(enumerate(sorted(indices)), key=lambda pair: pair[1] - pair[0])
    ends = [[index for _, index in run] for _, run in runs]
    told = [side.at(f"{run[0]}:{run[-1] + 1}" if run[1:] else run[0]) for run in ends[:MOST_RUNS]]
    left = sum(map(len, ends[MOST_RUNS:]))
    return ", ".join(told) + (f" and {count(left, 'more index')}" if left else "")


def _parts(size: int, most: int) -> list[tuple[int, int]]:
    """At most so many stretches of about one length."""
    number = min(size, most)
    return [*pairwise(size * part // number for part in range(number + 1))]
