"""The program's own source, and beside each line the gradient that arrives at what it made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.cells import NOTHING, ink_of
from gradscope.render.drawing.facts import meeting, residuals, skipped
from gradscope.render.drawing.head import Head
from gradscope.render.drawing.listing import Made, SourceFunction, SourceLine, listing
from gradscope.render.drawing.scale import odd, span, strip
from gradscope.render.drawing.scene import Scene, state_word
from gradscope.render.options import Options
from gradscope.render.words.findings import BADGES, head, paragraph
from gradscope.render.words.findings import INKS as INKS_OF
from gradscope.render.words.numbers import size
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import cells
from gradscope.simplify import Folding
from gradscope.simplify.folded import meant
from gradscope.simplify.gradients import combine, middle
from gradscope.simplify.view import Item
from gradscope.words import count, one_line

COLUMNS = (
    Column("", right=True),
    Column("", narrowest=12),
    Column("", right=True, drop=4, narrowest=8),
    Column("‖g‖", right=True),
    Column("", drop=3),
    Column("", drop=2),
    Column("", drop=1, narrowest=12, comfort=20),
)
SIZES = 28
"""Cells that the number of a line and the sizes beside it may need."""

BLANK = [NOTHING] * 5

STRIP = 12
"""Cells of the strip of a line that made several values."""

MOST_NAMED = 2
"""Leaves of a line that are named; of more it is said how many there are."""


def render(report: Report, options: Options) -> str:
    """The listing, ending with a newline."""
    return "\n".join(_Code(report, options).lines()) + "\n"


class _Code(Head):
    def __init__(self, report: Report, options: Options) -> None:
        super().__init__(Scene(report, options))
        self.is_open = options.folding.all
        # The verdict is on what is folded, and a line on single nodes.
        self.single = Scene(report, replace(options, folding=Folding(all=True)))
        self.wanted = meant(self.scene.graph, options.folding)
        self.item_of = {item.members[0]: item for item in self.single.view.items}
        self.untold = list(self.scene.report.findings)
        leaves = self.scene.graph.leaves
        self.names = {leaf.node: visible(next(iter(leaf.names), "")) for leaf in leaves}

    def lines(self, calls: str = "") -> Iterator[str]:
        """What is wrong at once, then each function."""
        functions = list(listing(self.scene.report, self.wanted))
        yield from self.first(calls, findings=False)
        # One table, so that sizes stand below one another.
        number, text, answer, *others = COLUMNS
        answer = replace(answer, title=self.answers)
        # The source is what this is about: notes go before less than this of it is left.
        least = max(self.options.width * 2 // 5, text.narrowest)
        text = replace(text, narrowest=min(least, self.options.width - SIZES), comfort=least)
        if functions:
            yield ""
            columns = [number, text, answer, *others]
            yield from self.table(columns, list(self._all_rows(functions)))
        if self.untold:
            yield ""
        for finding in self.untold:
            line = f"{BADGES[finding.severity]} {head(finding)}"
            yield self.fitted(line, INKS_OF[finding.severity])
            yield from paragraph("  ", self.glyphs.text(finding.message), self.options.width)
        lines = (line for function in functions for line in function.lines if line is not None)
        made = sum(len(piece.nodes) for line in lines for piece in line.pieces)
        nodes = self.scene.graph.nodes
        missing = sum(nodes[node].kind != "leaf" for node in self.wanted) - made
        if missing:
            yield ""
            words = (
                f"{count(missing, 'node')} more, made by a backward or by no line of the program"
            )
            yield self.line(words, "dim")

    def _name(self, function: SourceFunction) -> str:
        is_module = function.name in ("", "<module>")
        return self.scene.file(function.file) + ("" if is_module else f" · {function.name}")

    def _all_rows(self, functions: Sequence[SourceFunction]) -> Iterator[list[Cell]]:
        for position, function in enumerate(functions):
            if position:
                yield [NOTHING]
            yield [(Part(self._name(function), "bold"),)]
            yield from self._rows(function)

    def _rows(self, function: SourceFunction) -> Iterator[list[Cell]]:
        known = [line.text.expandtabs() for line in function.lines if line is not None]
        texts = [text for text in known if text.strip()]
        margin = min((len(text) - len(text.lstrip()) for text in texts), default=0)
        for line in function.lines:
            if line is None:
                yield [NOTHING, (Part(self.glyphs.ellipsis, "dim"),), *BLANK]
                continue
            wholes = line.wholes
            yield self._row(line, wholes, margin)
            if self.is_open:
                yield from (self._part(piece, [piece]) for piece in line.pieces[len(wholes) == 1 :])
            elif len(wholes) > 1:
                # Many lines have no answer, and some thousands of values.
                yield from (
                    self._part(one, line.within(one) if self.answers else [one]) for one in wholes
                )
            yield from self._findings(function.file, line, margin)

    def _row(self, line: SourceLine, wholes: Sequence[Made], margin: int) -> list[Cell]:
        text = line.text.expandtabs()[margin:].rstrip()
        flow = self._flow(wholes[0]) if len(wholes) == 1 else list(BLANK)
        if len(line.pieces) > 1:
            flow[0] = self._answer(line.pieces)
        is_silent = not line.pieces
        number: Cell = (Part(f"{line.number}", "dim"),)
        row = [number, (Part(text, "dim" if is_silent else ""),), *flow]
        if line.leaves:
            row[-1] = self._leaves(line.leaves, row[-1])
        return row

    def _part(self, piece: Made, with_parts: Sequence[Made]) -> list[Cell]:
        """A row of its own, whose answer is on all of an expression that is told in no other."""
        text = f"    {self.glyphs.last}{one_line(piece.origin.expression)}"
        _, *flow = self._flow(piece)
        return [NOTHING, (Part(text, "dim"),), self._answer(with_parts), *flow]

    # ------------------------------------------------------------------ what was asked for

    @cached_property
    def answers(self) -> str:
        """What the column of a command's own answer is called."""
        if self.scene.report.explanation is not None:
            return "derivative"
        return "" if self.options.overlay is None else self.options.overlay.name

    def _answer(self, pieces: Sequence[Made]) -> Cell:
        """Of what a line made the bytes that are saved, the verdict that matters most, or the local
        derivatives where it is one operation."""
        nodes = [node for piece in pieces for node in piece.nodes]
        local, overlay = self._local(nodes), self.options.overlay
        if local or overlay is None:
            return (Part(local),)
        if total := sum(overlay.bytes.get(node, 0) for node in nodes):
            return (Part(size(total)),)
        marks = [overlay.nodes[node] for node in nodes if node in overlay.nodes]
        worst = max(marks, key=lambda mark: mark.weight, default=None)
        return NOTHING if worst is None else (Part(worst.words, f"bold {worst.color}"),)

    def _local(self, nodes: Sequence[int]) -> str:
        """``by x: [0.5403, -0.99]``, of each operand of a single operation."""
        edges = self.scene.graph.edges
        factors = self.single.factors.items() if len(nodes) == 1 else ()
        return " · ".join(
            f"by {self._operand(edges[edge].target)}: {factor}"
            for edge, factor in factors
            if edges[edge].source == nodes[0]
        )

    def _operand(self, number: int) -> str:
        node = self.scene.graph.nodes[number]
        return self.names.get(number) or visible(node.variable) or self.scene.called(node)

    # ------------------------------------------------------------------ the gradient

    def _flow(self, piece: Made) -> list[Cell]:
        """The answer, the size of what arrives, how often, a strip in the order of the program, and
        a note."""
        gradients, answer = self.single.gradients, self._answer([piece])
        if gradients is None:
            return [answer, *BLANK[1:]]
        items = [self.item_of[node] for node in reversed(piece.results)]
        infos = [gradients.entering(item) for item in items]
        many = len(infos) > 1
        drawn = strip(infos, STRIP, self.glyphs) if many else ""
        return [
            answer,
            self._size(infos),
            (Part(f"×{len(infos):,}" * many, "dim"),),
            (Part(drawn, ink_of(self.scene, middle(infos))),),
            (Part(self._meeting(items), "dim"),),
        ]

    def _meeting(self, items: Sequence[Item]) -> str:
        """What is to be said of gradients that meet in what a line made."""
        shares = [share for item in items for share in residuals(self.single, item)]
        if len(items) == 1 or len(shares) < len(items):
            return meeting(self.single, items[0]) if len(items) == 1 else ""
        return skipped(shares)

    def _size(self, infos: Sequence[GradientInfo]) -> Cell:
        without = odd(infos, self.glyphs.bad) if len(infos) > 1 else ""
        words = [without, span(infos)]
        if len(infos) == 1 and infos[0].state != "finite":
            words = [state_word(infos[0], self.glyphs.silent, self.glyphs.bad)]
        return (Part(" · ".join(filter(None, words)), ink_of(self.scene, combine(list(infos)))),)

    # ------------------------------------------------------------------ beside and below

    def _leaves(self, positions: Sequence[int], note: Cell) -> Cell:
        """The leaves that a line takes, with what each gets."""
        scene, sign = self.scene, self.glyphs.leaf
        infos = [scene.gradients.leaf(one) for one in positions] if scene.gradients else []
        names = [next(iter(scene.graph.leaves[one].names), "?") for one in positions]
        if len(names) > MOST_NAMED:
            sizes = [odd(infos, self.glyphs.bad), span(infos)] if infos else []
            words = [
                " ".join((count(len(names), "leaf"), " · ".join(filter(None, sizes)))).rstrip()
            ]
        else:
            signs = self.glyphs.silent, self.glyphs.bad
            sizes = [span([info]) or state_word(info, *signs) for info in infos]
            words = list(map(" ".join, zip(names, sizes, strict=True))) if sizes else names
        gap = " · " if note[0].text else ""
        return (*note, Part(f"{gap}{sign} {', '.join(words)}", "green"))

    def _findings(self, file: str, line: SourceLine, margin: int) -> Iterator[list[Cell]]:
        """What the doctor has found at this line, with a mark below the guilty expression."""
        for finding in tuple(self.untold):
            place = finding.location
            if place is None or (place.file, place.line) != (file, line.number):
                continue
            self.untold.remove(finding)
            ink = INKS_OF[finding.severity]
            expression = one_line(place.expression)
            # Of two that read the same it is not known which one is meant.
            if expression and line.text.count(expression) == 1:
                before = line.text[: line.text.index(expression)].expandtabs()[margin:]
                mark = " " * cells(before) + "^" * cells(expression)
                yield [NOTHING, (Part(mark, ink),), *BLANK]
            said = f"{finding.rule} {finding.name}: {finding.message}"
            yield from self._said(f"  {BADGES[finding.severity]} ", said, ink)
            yield from self._said("    do ", finding.remedy, "dim")

    def _said(self, lead: str, text: str, ink: str) -> Iterator[list[Cell]]:
        """A text over the whole width, in as many rows as it needs."""
        for row in paragraph(lead, text, self.options.width) if text else ():
            yield [(Part(row, ink),)]
