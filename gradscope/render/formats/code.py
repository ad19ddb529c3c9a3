"""The program's own source, and beside each line the gradient that arrives at what it made, in a
few columns for each quantity."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.model.observations import Finding
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.beside import Calls, TermShares
from gradscope.render.drawing.facts import meeting, opposing, residuals, skipped, up_to
from gradscope.render.drawing.head import FEWEST_LINES, HEAD_LINES, Head, by_size
from gradscope.render.drawing.listing import Made, SourceFunction, SourceLine, listing
from gradscope.render.drawing.overlay import both_ways
from gradscope.render.drawing.scale import short, sizes, span, strip
from gradscope.render.drawing.scene import Scene, state_word
from gradscope.render.drawing.split_groups import leaf_groups, sentences
from gradscope.render.drawing.verdict import Marks
from gradscope.render.options import Options
from gradscope.render.words.findings import head, paragraph
from gradscope.render.words.numbers import elements, size
from gradscope.render.words.table import Cell, Column, Part, Table, parts
from gradscope.render.words.text import BADGES, Glyphs, cells, is_of_library
from gradscope.render.words.text import INKS as INKS_OF
from gradscope.simplify import Folding
from gradscope.simplify.folded import meant
from gradscope.simplify.gradients import combine, middle
from gradscope.simplify.view import Item
from gradscope.words import count, listed, one_line, option

STRIP = 12
"""Cells of the strip of a line that made several values."""


class Quantity(NamedTuple):
    """Columns, and their cells: of an expression, None for a line of several that have rows of
    their own, and of all that it is made of."""

    columns: Sequence[Column]
    cells: Callable[[Made | None, Sequence[Made]], Sequence[Cell]]


def told(infos: Sequence[GradientInfo], glyphs: Glyphs) -> str:
    """The size of one gradient, or its state in a word; the sizes of several."""
    word = state_word(infos[0], glyphs.silent, glyphs.bad) if len(infos) == 1 else ""
    return word or sizes(infos, glyphs.bad)


class Quantities:
    """All that there is to say of the nodes of one scene in which nothing is folded.

    ``answer`` is what a command's own answer is called, ``""`` where there is none; ``calls`` are
    there where there are several.
    """

    def __init__(self, scene: Scene, glyphs: Glyphs) -> None:
        self.scene, self.glyphs = scene, glyphs
        self.item_of = {item.members[0]: item for item in scene.view.items}
        leaves = scene.graph.leaves
        self.names = {leaf.node: visible(next(iter(leaf.names), "")) for leaf in leaves}
        self.answer = "" if scene.options.overlay is None else scene.options.overlay.name
        if scene.report.explanation is not None:
            self.answer = "derivative"
        median = "of a line that made several values"
        self.calls = Calls(scene, glyphs, median) if scene.each else None
        split = scene.report.split
        self.terms = TermShares(scene, split) if split is not None and split.nodes else None

    def answers_head(self) -> str:
        """What a command's own answer is beside a line, where that needs words."""
        if self.scene.report.explanation is not None:
            return "derivatives of at most 4 numbers, beside lines of one operation"
        overlay = self.scene.options.overlay
        counts = '"2 of 3" beside a line counts its operations'
        return f"{overlay.caption} · {counts}" if overlay and self.scene.report.checks else ""

    def each(self) -> Iterator[Quantity]:
        """Each quantity of which there is something to say."""
        narrowest = 8 if self.scene.report.explanation else 0
        yield Quantity(
            [Column(self.answer, right=True, drop=4, narrowest=narrowest)], self._answers
        )
        if self.calls is not None:
            yield Quantity(self.calls.columns(), self._at_calls)
        else:
            # Where terms are asked for, they are what stays.
            norm = Column("‖g‖", right=True, drop=5 if self.terms else 0)
            yield Quantity([norm, Column("", drop=3), Column("loss → leaf", drop=2)], self._sizes)
        if self.terms is not None:
            yield Quantity(self.terms.columns(), self._shares)
        yield Quantity([Column("", drop=1, narrowest=12, comfort=22)], self._meetings)

    # ------------------------------------------------------------------ a command's own answer

    def _answers(self, _: Made | None, pieces: Sequence[Made]) -> list[Cell]:
        """Of what a line made the bytes that are saved, the verdict that matters most, or the local
        derivatives where it is one operation."""
        nodes = [node for piece in pieces for node in piece.nodes]
        local, overlay = self._local(nodes), self.scene.options.overlay
        if local or overlay is None:
            return [local]
        if total := sum(overlay.bytes.get(node, 0) for node in nodes):
            return [size(total)]
        marks = [overlay.nodes[node] for node in nodes if node in overlay.nodes]
        worst = max(marks, key=lambda mark: mark.weight, default=None)
        if worst is None:
            return [""]
        many = f" {marks.count(worst):,} of {len(nodes):,}" * (marks.count(worst) < len(nodes))
        return [Part(f"{worst.words}{many}", f"bold {worst.color}")]

    def _local(self, nodes: Sequence[int]) -> str:
        """``by x: [0.5403, -0.99]``, of each operand of a single operation."""
        edges = self.scene.graph.edges
        factors = self.scene.factors.items() if len(nodes) == 1 else ()
        return " · ".join(
            f"by {self._operand(edges[edge].target)}: {factor}"
            for edge, factor in factors
            if edges[edge].source == nodes[0]
        )

    def _operand(self, number: int) -> str:
        node = self.scene.graph.nodes[number]
        return self.names.get(number) or visible(node.variable) or self.scene.called(node)

    # ------------------------------------------------------------------ the gradient

    def _items(self, whole: Made | None) -> list[Item]:
        """What made the values of an expression, in the order of backward."""
        return [] if whole is None else [self.item_of[node] for node in whole.results]

    def _sizes(self, whole: Made | None, pieces: Sequence[Made]) -> list[Cell]:
        """The size of what arrives, how often, and a strip in the order of backward; and what
        it is to blame for, where no finding below the line says so."""
        gradients, items = self.scene.gradients, self._items(whole)
        if gradients is None or not items:
            return [""] * 3
        infos = [gradients.entering(item) for item in items]
        many = len(infos) > 1
        if many and len(pieces) > 1 and not any(piece is whole for piece in pieces):
            # Values of several expressions have no order in which they grow or shrink.
            worst = min(infos, key=lambda info: by_size(info, -1))
            is_whole = worst.state == "finite"
            words = f"up to {told([worst], self.glyphs)}" if is_whole else told(infos, self.glyphs)
            return [Part(words, self.scene.scale.ink(worst)), "", ""]
        return [
            Part(told(infos, self.glyphs), self.scene.scale.ink(combine(infos))),
            Part(f"×{len(infos):,}" * many, "dim"),
            Part(
                strip(infos, STRIP, self.glyphs) if many else "",
                self.scene.scale.ink(middle(infos)),
            ),
        ]

    def _at_calls(self, whole: Made | None, _: Sequence[Made]) -> list[Cell]:
        if self.calls is None:
            return []
        items = self._items(whole)
        each = [middle([one.entering(item) for item in items]) for one in self.calls.each if items]
        return self.calls.cells(each or [None] * len(self.calls.each))

    def _shares(self, whole: Made | None, _: Sequence[Made]) -> list[Cell]:
        return self.terms.cells(whole.results if whole else ()) if self.terms else []

    def _meetings(self, whole: Made | None, _: Sequence[Made]) -> list[Cell]:
        """What is to be said of gradients that meet in what a line made."""
        # What meets in the result of a module is told where it was made.
        is_made_here = whole is not None and {*whole.results} <= {*whole.nodes}
        items = [] if self.calls or not is_made_here else self._items(whole)
        shares = [share for item in items for share in residuals(self.scene, item)]
        opposed = [share for item in items for share in opposing(self.scene, item)]
        # The last of several blocks has nothing behind it that it could be a skip around.
        few = f" ×{len(shares)}" if len(shares) < len(items) else ""
        told = (skipped(shares) + few if 2 * len(shares) >= len(items) else "", up_to(opposed))
        if len(items) == 1:
            told = (meeting(self.scene, items[0]), "")
        return [Part(" · ".join(filter(None, told)), "dim")]


NUMBER = Column("", right=True)
NARROWEST = 12
"""Cells of the source below which nothing of it can be read."""

SIZES = 28
"""Cells that the number of a line and the sizes beside it may need."""

LONG_PATH = 24
"""Letters of a leaf's path from which its end alone is told."""

WIDE = 80
"""Cells from which on a single leaf has room beside a line."""

MOST_BELOW = 6
"""Leaves that are named below a line, or places that they have in all layers."""

FEWEST_LAYERS = 3
"""Leaves that have one place in all layers are told as one, if they are so many."""


class _Code(Head):
    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(Scene(report, options))
        self.is_open = options.folding.all
        # The verdict is on what is folded, and a line on single nodes.
        self.single = Scene(report, replace(options, folding=Folding(all=True)))
        self.wanted = meant(self.scene.graph, options.folding)
        self.marks = Marks(self.scene)
        self.known = Quantities(self.single, self.glyphs)
        self.quantities = list(self.known.each())
        self.untold = list(self.scene.report.findings)
        self.is_beside = options.width >= WIDE
        graph = self.scene.graph
        calls = report.checks.calls if report.checks else ()
        each = ((call, one) for call in calls for one in call.inputs)
        self.wrong = [pair for pair in each if pair[1].verdict == "wrong"]
        self.cutting = {graph.origins[one.origin] for one in graph.walls if one.origin is not None}

    def lines(self, calls: str = "") -> Iterator[str]:
        """What is wrong at once, then each function."""
        functions = list(listing(self.scene.report, self.wanted))
        self.folded = self._folded_of(functions)
        known, report = self.known, self.scene.report
        yield from self.first(known.calls.head() if known.calls else calls, findings=False)
        yield from self.wrapped(known.answers_head(), "dim")
        if known.terms is not None and report.split is not None:
            folding = self.options.folding
            groups = leaf_groups(report, report.split, folding.depth, folding.all)
            told = sentences(report, report.split, groups)
            yield from self.wrapped(visible(told)) if told else ()
            yield from self.wrapped(known.terms.head(), "dim")
        # The source is what this is about: notes go before less than this of it is left.
        least = max(self.options.width * 2 // 5, NARROWEST)
        narrowest = min(least, self.options.width - SIZES)
        text = Column("", narrowest=narrowest, comfort=least)
        if functions:
            yield ""
            # One table, so that sizes stand below one another.
            columns = [NUMBER, text, *(one for each in self.quantities for one in each.columns)]
            yield from self.table(columns, self._fitting(columns, functions))
        if self.folded:
            words = f"{count(len(self.folded), 'function')} of installed packages, a line each"
            yield from self.wrapped(f"{words}: {option('all')}", "dim")
        if self.untold:
            below = (self._told(one, "", head(one), one.message) for one in self.untold)
            yield from self.table([NUMBER, text], chain.from_iterable(below))
        made = sum(len(piece.nodes) for function in functions for piece in function.pieces)
        nodes = self.scene.graph.nodes
        missing = sum(nodes[node].kind != "leaf" for node in self.wanted) - made
        if missing:
            yield ""
            yield self.line(f"{count(missing, 'node')} more, made by no line that is known", "dim")

    def _name(self, function: SourceFunction) -> str:
        is_module = function.name in ("", "<module>")
        return self.scene.file(function.file) + ("" if is_module else f" · {function.name}")

    def _fitting(
        self, columns: Sequence[Column], functions: Sequence[SourceFunction]
    ) -> list[list[Cell]]:
        """All rows; single leaves stand beside their lines where there is room for that column."""
        untold = [*self.untold]
        rows = list(self._all_rows(functions))
        table = Table(columns, self.options.width, self.glyphs, self.options.color)
        if self.is_beside and not table.has_room(len(columns) - 1, rows):
            self.is_beside, self.untold = False, untold
            rows = list(self._all_rows(functions))
        return rows

    def _all_rows(self, functions: Sequence[SourceFunction]) -> Iterator[list[Cell]]:
        shown = [at for at in range(len(functions)) if at not in self.folded]
        opened = [functions[at] for at in sorted(shown, key=lambda at: at not in self.leading)]
        for position, function in enumerate(opened):
            if position:
                yield [""]
            yield [Part(self._name(function), "bold")]
            yield from self._rows(function)
        if opened and self.folded:
            yield [""]
        folded = [functions[at] for at in sorted(self.folded)]
        for before, function in zip([None, *folded], folded, strict=False):
            is_told = before is not None and before.file == function.file
            yield from self._folded(function, function.name if is_told else self._name(function))

    def _folded_of(self, functions: Sequence[SourceFunction]) -> set[int]:
        """The functions of installed packages that are a line each, where not all have room: those
        that ran once, and those inside of others.  What is to blame is open."""
        guilty = {finding.location.file for finding in self.untold if finding.location}
        # A round is told at the line that it is called at.
        spots = (spot.node for spot in self.marks.spots if not spot.is_round)
        blamed = {*self.scene.blame.nodes(), *spots}
        origins = self.scene.graph.origins
        named = [origins[spot.origin] for spot in self.marks.spots if spot.origin >= 0]
        leaves = enumerate(self.scene.graph.leaves)
        taken = {place for place, leaf in leaves if leaf.node in blamed}
        closed = {
            position: function
            for position, function in enumerate(functions)
            if not self.is_open
            and is_of_library(function.file)
            and function.file not in guilty
            and not any(piece.origin in named for piece in function.pieces)
            and blamed.isdisjoint(node for piece in function.pieces for node in piece.nodes)
            and taken.isdisjoint(leaf for line in function.lines if line for leaf in line.leaves)
        }
        # Where a package has something that stands out, it is what is looked for.
        self.leading = {*range(len(functions))} - closed.keys()
        own = (len(one.lines) + 2 for at, one in enumerate(functions) if at not in closed)
        room = max(self.options.lines, FEWEST_LINES) - HEAD_LINES - sum(own)
        room -= sum(1 + any(line and line.leaves for line in one.lines) for one in closed.values())
        ranks = {position: self._rank(function) for position, function in closed.items()}
        outer = min((depth for is_once, depth in ranks.values() if not is_once), default=0)

        def order(position: int) -> tuple[bool, bool, int]:
            """A block that is repeated, then what calls it, then what is in it; file by file."""
            is_once, depth = ranks[position]
            is_block = not is_once and depth == outer
            return not is_block, not is_once, files.index(functions[position].file)

        files = list(dict.fromkeys(function.file for function in functions))
        opened: set[str] = set()
        is_full = False
        for position in sorted(closed, key=lambda at: (*order(at), ranks[at][1])):
            function = functions[position]
            more = len(function.lines) + 1
            if more > room:
                is_full = True
            elif not is_full or function.file in opened:
                # What a model's own lines had no room for, its helpers in other files do not take.
                room -= more
                opened.add(function.file)
                del closed[position]
        return {*closed}

    def _rank(self, function: SourceFunction) -> tuple[bool, int]:
        """Whether it ran once, and in how many modules that call one another."""
        graph = self.scene.graph
        pieces = function.pieces
        is_once = min((len(piece.results) for piece in pieces), default=0) < 2
        calls = {graph.nodes[piece.nodes[0]].call for piece in pieces if piece.nodes}
        # All at once: the outermost of them has no call around it first.
        depth = 0
        while calls and None not in calls:
            calls = {graph.calls[call].parent for call in calls if call is not None}
            depth += 1
        return is_once, depth

    def _folded(self, function: SourceFunction, name: str) -> Iterator[list[Cell]]:
        """A function of an installed package as one line, with all that it made, and the leaves
        that it takes."""
        lines = [line for line in function.lines if line is not None and line.pieces]
        pieces = function.pieces
        results = sorted(node for line in lines for one in line.wholes for node in one.results)
        numbers = dict.fromkeys((lines[0].number, lines[-1].number))
        at = Part(f":{'–'.join(map(str, numbers))}", "dim", "never")
        row: list[Cell] = ["", (Part(name, "bold", "start"), at)]
        yield row + self._cells(Made(pieces[0].origin, results=results), pieces)
        yield from self._cut(pieces)
        leaves: dict[int, list[int]] = {}
        for leaf, edges in (taken for line in lines for taken in line.leaves.items()):
            leaves.setdefault(leaf, []).extend(edges)
        yield from self._below(leaves, "       ") if leaves else ()

    def _rows(self, function: SourceFunction) -> Iterator[list[Cell]]:
        known = [line.text.expandtabs() for line in function.lines if line is not None]
        texts = [text for text in known if text.strip()]
        margin = min((len(text) - len(text.lstrip()) for text in texts), default=0)
        for line in function.lines:
            if line is None:
                yield ["", Part(self.glyphs.ellipsis, "dim"), *self._cells(None, ())]
                continue
            wholes = line.wholes
            row = self._row(line, wholes, margin)
            # What takes more room than there is beside the line stands below it.
            is_noted = any(part.text for part in parts(row[-1]))
            is_beside = len(line.leaves) == 1 and not is_noted and self.is_beside
            if is_beside:
                row[-1] = self._beside(*line.leaves.items())
            yield row
            found = self._found(function.file, line.number)
            yield from (row for one in found for row in self._pointed(one, line.text, margin))
            if self.is_open:
                yield from (self._part(piece, [piece]) for piece in line.pieces[len(wholes) == 1 :])
            elif len(wholes) > 1:
                # Many lines have no answer, and some thousands of values.
                yield from (
                    self._part(one, line.within(one) if self.known.answer else [one])
                    for one in wholes
                )
            yield from self._cut(line.pieces)
            yield from self._marked(line, function.file)
            yield from self._wrong(line)
            for one in found:
                yield from self._told(one, "  ", f"{one.rule} {one.name}: {one.message}")
            if line.leaves and not is_beside:
                yield from self._below(line.leaves, "  ")

    def _row(self, line: SourceLine, wholes: Sequence[Made], margin: int) -> list[Cell]:
        text = line.text.expandtabs()[margin:].rstrip()
        is_silent = not line.pieces
        number: Cell = Part(f"{line.number}", "dim")
        told = self._cells(wholes[0] if len(wholes) == 1 else None, line.pieces)
        return [number, Part(text, "dim" if is_silent else ""), *told]

    def _part(self, piece: Made, with_parts: Sequence[Made]) -> list[Cell]:
        """A row of its own, whose answer is on all of an expression that is told in no other."""
        text = f"    {self.glyphs.last}{one_line(piece.origin.expression)}"
        return ["", Part(text, "dim"), *self._cells(piece, with_parts)]

    def _cells(self, whole: Made | None, pieces: Sequence[Made]) -> list[Cell]:
        """What each quantity says of an expression with all its parts."""
        return [cell for one in self.quantities for cell in one.cells(whole, pieces)]

    # ------------------------------------------------------------------ beside and below

    def _beside(self, taken: tuple[int, list[int]]) -> Cell:
        """The only leaf that a line takes, with what it gets."""
        position, edges = taken
        # Of a long path the end says which it is, and the number must have room.
        path = self._leaf(position)
        name = path if len(path) <= LONG_PATH else f"{self.glyphs.ellipsis}{short(path)}"
        sign = Part(f"{self.glyphs.leaf} ", "green", "never")
        return (
            sign,
            Part(name, "green", "start"),
            Part(f" {self._got([position], edges)}", "green", "never"),
        )

    def _below(self, leaves: Mapping[int, list[int]], margin: str) -> Iterator[list[Cell]]:
        """``ln_1.weight ×12 0.0164–0.07357``: each leaf that a line takes, or each of a layer, with
        what it gets; how many they are where these are many, too, and which gets most."""
        alike: dict[str, list[int]] = {}
        for one in leaves:
            alike.setdefault(re.sub(r"\b\d+\b", "*", self._leaf(one)), []).append(one)
        if max(map(len, alike.values())) < FEWEST_LAYERS:
            alike = {f"{place}": [one] for place, one in enumerate(leaves)}
        if len(alike) > MOST_BELOW:
            alike = {"": [*leaves]}
        several = [name for name, some in alike.items() if len(some) > 1]
        shown = dict(zip(several, _ends(several), strict=True))
        lead, row = f"{margin}{self.glyphs.leaf} ", ""
        for name, some in alike.items():
            who = self._leaf(some[0])
            if len(some) > 1:
                who = f"{shown[name]} ×{len(some):,}" if name else count(len(some), "leaf")
            edges = [edge for one in some for edge in leaves[one]]
            said = f"{who} {self._got(some, edges)}".rstrip()
            said += "" if name else self._largest(some)
            if row and cells(f"{lead}{row}, {said},") > self.options.width:
                # A name and its number stay together.
                yield from self._said(lead, f"{row},", "green")
                lead, row = " " * len(lead), ""
            row = f"{row}, {said}" if row else said
        yield from self._said(lead, row, "green")

    def _leaf(self, position: int) -> str:
        return visible(next(iter(self.scene.graph.leaves[position].names), "?"))

    def _arrived(self, positions: Sequence[int]) -> list[GradientInfo]:
        """What each of these leaves gets; nothing of several calls, of which each has its own."""
        gradients = None if self.known.calls else self.scene.gradients
        return [gradients.leaf(one) for one in positions] if gradients else []

    def _largest(self, positions: Sequence[int]) -> str:
        """``, largest w``: which of several leaves gets most, where one call is shown."""
        infos = zip(positions, self._arrived(positions), strict=False)
        norms = {one: float(info.norm or 0) for one, info in infos if info.state == "finite"}
        return f", largest {self._leaf(max(norms, key=norms.__getitem__))}" if norms else ""

    def _got(self, positions: Sequence[int], edges: Sequence[int]) -> str:
        """The sizes of what leaves get; where they get something elsewhere as well, what each gets
        along one of these ``edges``, too: ``6.057 (4.976 here)``."""
        infos = self._arrived(positions)
        gradients, whole = self.scene.gradients, self._sized(positions, infos)
        if gradients is None or len(edges) != len(positions) or not span(infos):
            return whole
        nodes = {self.scene.graph.leaves[one].node for one in positions}
        is_all = len(edges) == sum(len(gradients.contributions(node)) for node in nodes)
        # Of what a hook has changed the parts are those of before.
        if is_all or not nodes.isdisjoint(gradients.backward.altered):
            return whole
        here = self._sized(positions, [*map(gradients.backward.on_edge, edges)])
        return f"{whole} ({here} here)"

    def _sized(self, positions: Sequence[int], infos: Sequence[GradientInfo]) -> str:
        """The sizes of what leaves get; of a single number that number, for its sign tells which
        of several uses pull against each other."""
        tensor = self.scene.graph.leaves[positions[0]].tensor
        is_number = len(infos) == 1 == elements(tensor.shape) == len(infos[0].values or ())
        if is_number:
            return self.scene.told(infos[0], tensor, self.glyphs.silent, self.glyphs.bad)
        return told(infos, self.glyphs)

    def _cut(self, pieces: Sequence[Made]) -> Iterator[list[Cell]]:
        """Which of these expressions made nothing and cut a history, and where that of what they
        take was cut."""
        here = [one for one in pieces if not one.nodes and one.origin in self.cutting]
        which = f": {listed(one_line(one.origin.expression) for one in here)}" * (here != [*pieces])
        taken = self.single.cut(node for piece in pieces for node in piece.nodes)
        told = (f"history cut here{which}" if here else "", taken)
        yield from self._said("  ", " · ".join(filter(None, told)), "dim")

    def _marked(self, line: SourceLine, file: str) -> Iterator[list[Cell]]:
        """What the verdict says of a line, and of the leaves that it takes."""
        graph, known = self.scene.graph, (one for one in self.marks.placed if one.origin >= 0)
        placed = ((one, graph.origins[one.origin]) for one in known)
        spots = [one for one, at in placed if (at.file, at.line) == (file, line.number)]
        place = f"{file}:{line.number}"
        of_leaves = self.marks.of_leaves(
            {graph.leaves[leaf].node for leaf in line.leaves}, place=place
        )
        spots += [of_leaves] if of_leaves else []
        # Two calls on a line may say the same.
        for spot in {one.words: one for one in spots}.values():
            sign = f"  {BADGES[spot.severity]} "
            yield from self._said(sign, self.glyphs.text(spot.words), INKS_OF[spot.severity])

    def _wrong(self, line: SourceLine) -> Iterator[list[Cell]]:
        """What backward and differences say of what is wrong in a line, where they differ most."""
        made = {node for piece in line.pieces for node in piece.nodes}
        wrong = [(call, one) for call, one in self.wrong if call.nodes[0] in made]
        found = {}
        for call, one in sorted(wrong, key=lambda pair: float(pair[1].error or 0)):
            who = self.scene.called(self.scene.graph.nodes[call.nodes[0]])
            found[who, one.name] = f"{who} by {one.name}{both_ways(one)}"
        for words in found.values():
            yield from self._said("  ✖ ", words, INKS_OF["error"])

    def _found(self, file: str, number: int) -> list[Finding]:
        """What the doctor has found at a line, which is told nowhere else then."""
        places = [(one, one.location) for one in self.untold if one.location]
        found = [one for one, at in places if (at.file, at.line) == (file, number)]
        self.untold = [one for one in self.untold if one not in found]
        return found

    def _pointed(self, finding: Finding, text: str, margin: int) -> Iterator[list[Cell]]:
        """A mark below the guilty expression of a line."""
        expression = one_line(finding.location.expression if finding.location else "")
        # Of two that read the same it is not known which one is meant.
        if expression and text.count(expression) == 1:
            before = text[: text.index(expression)].expandtabs()[margin:]
            mark = " " * cells(before) + "^" * cells(expression)
            yield ["", Part(mark, INKS_OF[finding.severity]), *self._cells(None, ())]

    def _told(self, one: Finding, margin: str, title: str, more: str = "") -> Iterator[list[Cell]]:
        """What was found, what was seen of it, and what to do."""
        yield from self._said(f"{margin}{BADGES[one.severity]} ", title, INKS_OF[one.severity])
        yield from self._said(f"{margin}  ", more, "")
        # The first is of the place itself, the others of what led to it and came of it.
        yield from self._said(f"{margin}  seen ", "".join(one.evidence[:1]), "dim")
        yield from self._said(f"{margin}  do ", one.remedy, "dim")

    def _said(self, lead: str, text: str, ink: str) -> Iterator[list[Cell]]:
        """A text over the whole width, in as many rows as it needs."""
        for row in paragraph(lead, text, self.options.width) if text else ():
            yield [Part(row, ink)]


def _ends(paths: Sequence[str]) -> list[str]:
    """The ends of paths, as long as it takes to tell them apart, each beginning with a name."""
    rows = [path.split(".") for path in paths]
    for many in range(2, max(map(len, rows), default=0) + 1):
        known = [
            next((at for at in range(many, len(row)) if row[-at] != "*"), len(row)) for row in rows
        ]
        ends = [".".join(row[-at:]) for row, at in zip(rows, known, strict=True)]
        if len({*ends}) == len(ends):
            return ends
    return [*paths]


render = _Code.render
