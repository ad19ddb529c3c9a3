"""What stands in the columns of the tree: for every row its name, expression, shape, gradient and
size; and which of them go first where there is no room.

Must not know how rows are ordered or how wide the terminal is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradscope.escaping import visible
from gradscope.model.plain import TensorInfo
from gradscope.model.report import GradientInfo
from gradscope.render.drawing.facts import (
    Note,
    difference,
    edges_in_words,
    frame,
    hooked,
    marked,
    meeting,
    notes_of,
    of_edges,
    parts_of,
)
from gradscope.render.drawing.scale import (
    BAD_INK,
    FEWEST_CELLS,
    MOST_CELLS,
    STEPS,
    odd,
    short,
    size_cell,
    span,
    strip,
)
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.verdict import Marks, Spot
from gradscope.render.words import numbers
from gradscope.render.words.table import GAP, Cell, Column, Part, Parts, parts
from gradscope.render.words.text import BADGES, Glyphs, cells
from gradscope.render.words.text import INKS as INKS_OF
from gradscope.simplify.gradients import ViewGradients, middle
from gradscope.simplify.view import Item, Link

if TYPE_CHECKING:
    from gradscope.render.drawing.beside import Calls, TermShares

ROOT = -1


class TreeRow(NamedTuple):
    """One line of the tree.

    ``lead`` are the branches before the sign.  ``link`` is the index of the view's link, or
    :data:`ROOT` where a root is entered, ``root`` then being its number.  A note is an additional
    row of its item: ``note`` is its number.  A frame stands above the first item of a template,
    which hangs below it."""

    kind: Literal["definition", "reference", "note", "frame"]
    lead: str
    item: int
    link: int = ROOT
    root: int = 0
    note: int = 0


COLUMNS = (
    Column("node", narrowest=16, comfort=24),
    Column("expression", drop=6, narrowest=8, comfort=22, essential=True),
    Column("shape", drop=1),
    Column("value", drop=3, right=True, essential=True),
    Column("gradient", drop=5, right=True, essential=True),
    Column("‖g‖", right=True),
    Column("", drop=2),
    Column("source", drop=4, narrowest=14, comfort=22, essential=True),
)
"""The line of the program stays where a shape does not: whoever looks wants to go there."""

GRADIENT = 4
"""The place of values among the columns."""


FOLDED_DROPS = {"shape": 1, "value": 2, "gradient": 3, "": 4, "source": 5}
"""In a folded view, and where few rows have values, sizes are compared down the column, so the bar
stays longer than shapes."""

FEW_VALUED = 0.25
"""A share of rows with values of a gradient that is too small for these to be compared."""


def of_folded(column: Column, width: int) -> Column:
    essential = column.essential and column.title not in ("gradient", "value")
    drop = FOLDED_DROPS.get(column.title, column.drop)
    comfort = min(20, width // 4) if column.title == "expression" else column.comfort
    is_spare = column.title == "shape"
    return replace(column, drop=drop, comfort=comfort, essential=essential, spare=is_spare)


def _valued(rows: Sequence[list[Cell]]) -> list[list[Cell]]:
    """The rows that tell values of a gradient."""
    return [
        row for row in rows if len(row) > GRADIENT and any(one.text for one in parts(row[GRADIENT]))
    ]


BAR_CELLS = 5
TIMES = 5
"""Cells of `` ×500``, behind the words on a repeat."""
FEW_CELLS = 16
"""Words of the program that stand for the operation they made, where that is but mentioned."""

COMMON = 80
"""Columns that a terminal has as a rule."""


def _cut(item: Item) -> Literal["start", "end"]:
    is_path = item.kind in ("leaf", "module") or (item.kind == "repeat" and item.type)
    return "start" if is_path else "end"


class Cells:
    """Fills the columns for the rows of one scene; with ``calls`` a column for each of them stands
    in the place of gradient and size, ``terms`` stand beside these."""

    def __init__(
        self,
        scene: Scene,
        glyphs: Glyphs,
        calls: Calls | None = None,
        terms: TermShares | None = None,
    ) -> None:
        self.scene = scene
        self.marks = Marks(scene)
        self.glyphs = glyphs
        self.calls = calls
        self.terms = terms
        self.is_plain = calls is None and not scene.options.sides
        self._notes: dict[int, Sequence[Note]] = {}
        self._spots: dict[int, Spot | None] = {}

    def notes(self, item: Item) -> Sequence[Note]:
        """The rows below that of an item; looked for once, for they are counted first."""
        if item.id not in self._notes:
            self._notes[item.id] = notes_of(self.scene, item)
        return self._notes[item.id]

    def columns(self, rows: Sequence[list[Cell]] = ()) -> list[Column]:
        """The columns of these rows, as wide as the options let them be."""
        width = self.scene.options.width
        is_sized = self.is_plain and self.scene.gradients is not None
        is_sparse = len(_valued(rows)) < FEW_VALUED * len(rows)
        folded = self.scene.is_folded or (is_sized and is_sparse)
        columns = [of_folded(one, width) for one in COLUMNS] if folded else [*COLUMNS]
        # What is marked is told in full where others can do without.
        told = max(map(self._told_of, self.scene.view.items), default=0)
        room = max(columns[1].comfort, min(told, width // 3))
        columns[1] = replace(columns[1], comfort=room)
        if self.scene.options.names == "torch":
            columns[0] = replace(columns[0], narrowest=24, comfort=max(width // 3, 24))
        elif width >= COMMON:
            # Beside its branches too little would be left of a leaf's name.
            columns[0] = replace(columns[0], narrowest=20)
        if self.calls is not None:
            columns[3:-1] = self.calls.columns()
        elif self.scene.options.sides:
            columns[4] = Column("difference")  # of graphs alone
        # Who asks for terms would rather do without the bars of the gradient.
        return [*columns, *(self.terms.columns(essential=True) if self.terms else ())]

    def _told_of(self, item: Item) -> int:
        """The cells that what is marked at an item needs."""
        spot = self._spot(item)
        # Its last number goes before the bars do.
        words = "".join(takewhile(lambda one: one[0] != ",", spot.pieces)) if spot else ""
        return cells(words) + TIMES * (item.kind == "repeat") if words else 0

    def _spot(self, item: Item) -> Spot | None:
        """What is marked at an item; looked for once, for columns are made by it as well."""
        if item.id not in self._spots:
            self._spots[item.id] = self.marks.of(item)
        return self._spots[item.id]

    def of_all(self, rows: Sequence[TreeRow]) -> list[list[Cell]]:
        """The cells of each row.  Of values that only the root has, which are its size, there is no
        column, which would cost names their room."""
        found = [self.of(row) for row in rows]
        valued = _valued(found)
        is_folded = self.scene.is_folded and self.is_plain
        if is_folded and [parts(row[GRADIENT])[0].text for row in valued] == ["1"]:
            valued[0][GRADIENT] = ""
        return found

    def of(self, row: TreeRow) -> list[Cell]:
        """The cells of a row."""
        found = self._of(row)
        if len(found) == 1:
            return found  # one line across all columns
        if self.calls is not None:
            each = [self._at_call(row, one) for one in self.calls.each]
            found[3:-1] = self.calls.cells(each, self._difference(row))
        elif self.scene.options.sides:
            found[4] = self._difference(row)
        if self.terms is not None:
            # Of what is told once the shares stand there.
            links = self.scene.incoming[row.item] if row.kind == "definition" else ()
            edges = (edge for link in links for edge in self.scene.view.links[link].edges)
            found += self.terms.cells({self.scene.graph.edges[edge].target for edge in edges})
        return found

    def _difference(self, row: TreeRow) -> Cell:
        """What differs in a comparison: an item is on one side alone, or else its gradient."""
        overlay, item = self.scene.options.overlay, self.scene.view.items[row.item]
        if overlay is None or row.kind == "note":
            return ""
        known = marked(overlay.nodes, item.members) if row.kind == "definition" else None
        links = self.scene.view.links
        edges: Sequence[int] = () if row.link == ROOT else links[row.link].edges
        if row.kind == "definition" and item.template is not None:
            # What is drawn once stands for all rounds, which get theirs from one another.
            edges = self._apart(item.round_of()) or edges
        return difference(known if known and known.words else of_edges(overlay, edges))

    def _apart(self, round_of: Mapping[int, int]) -> list[int]:
        """The edges into the rounds of an item that differ by a number."""
        into = ((at, node) for node in round_of for at in self._apart_into.get(node, ()))
        edges = self.scene.graph.edges
        return [at for at, node in into if round_of.get(edges[at].source) != round_of[node]]

    @cached_property
    def _apart_into(self) -> dict[int, list[int]]:
        """For each node the edges into it on which two sides differ by a number."""
        overlay, found = self.scene.options.overlay, dict[int, list[int]]()
        for at, mark in overlay.edges.items() if overlay else ():
            if mark.words.endswith("%"):
                found.setdefault(self.scene.graph.edges[at].target, []).append(at)
        return found

    def _at_call(self, row: TreeRow, gradients: ViewGradients) -> GradientInfo | None:
        item = self.scene.view.items[row.item]
        own, notes = self.notes(item), notes_of(self.scene, item, gradients)
        if row.kind == "note":
            # A hook that ran at one call only has a row of its own there.
            total = notes[row.note].total if row.note < len(notes) else None
            return self._flow(row, gradients) if own[row.note].is_whole else total
        if item.template is not None:
            return middle(self._by_rounds(row, item, gradients))
        return self._arriving(row, own, notes) or self._flow(row, gradients)

    def _arriving(
        self, row: TreeRow, own: Sequence[Note], notes: Sequence[Note]
    ) -> GradientInfo | None:
        """All that arrives at the item of a row by the notes of one call, where its ``own`` tell
        what comes along each edge; of a reference only the edge is meant."""
        is_whole = row.kind == "definition" and any(note.is_whole for note in own)
        return next((note.total for note in notes if note.total), None) if is_whole else None

    def _of(self, row: TreeRow) -> list[Cell]:
        item = self.scene.view.items[row.item]
        notes = self.notes(item)
        if row.kind == "note":
            return self._note(row, notes[row.note])
        if item.template is not None:
            return self._of_template(row, item)
        gradients = self.scene.gradients
        if row.kind == "definition" and item.rounds and gradients and gradients.apart(item):
            # Each round gets something from outside: of all together there is no size.
            *most, _, source = self._rounds(item, gradients.rounds(item))
            return [self._name(row, item), self._told(row, item), *most, "", source]
        info = self._arriving(row, notes, notes) or self._flow(row, gradients)
        tensor = self._tensor(row)
        return [self._name(row, item), self._told(row, item), *self._body(item, info, tensor)]

    def in_full(
        self, item: Item, info: GradientInfo | None, tensor: TensorInfo | None
    ) -> list[Cell]:
        """All cells of a node that has one row only, with the gradient that enters it."""
        arrivals = self.scene.arriving(item)
        expression = self._expression(item)
        gradients = self.scene.gradients
        hook = gradients.backward.hook_on(item.members[0]) if gradients else None
        if arrivals > 1 or hook is not None:
            gap = " · " if expression[0].text else ""
            words = f"sum of {arrivals:,}" if hook is None else hooked(hook)
            expression += (Part(f"{gap}{words}", "dim", "whole"),)
        title = Part(self.scene.title(item), cut=_cut(item))
        name = (*self._badge(item), title, *self._type(item))
        return [name, expression, *self._body(item, info, tensor)]

    def _of_template(self, row: TreeRow, item: Item) -> list[Cell]:
        """The cells of what stands for many rounds: the range of their norms, and a strip."""
        scene = self.scene
        if row.kind == "frame":
            template = scene.view.templates[item.template or 0]
            note = frame(scene, template)
            lead, title = f"{row.lead}{self.glyphs.opened} ", f"{note.title}  "
            room = scene.options.width - cells(lead + title) - FEWEST_CELLS
            return [
                self._across(lead, note, title + self._mark(self.marks.of_frame(template), room))
            ]
        infos = self._by_rounds(row, item, scene.gradients)
        if row.kind == "reference" and len(infos) == 1:
            # From outside one of the rounds is meant.
            info = self._flow(row, scene.gradients)
            told = self._told(row, item)
            return [self._name(row, item), told, *self._body(item, info, self._tensor(row))]
        return [self._name(row, item), self._told(row, item), *self._rounds(item, infos)]

    def _mark(self, spot: Spot | None, room: int) -> str:
        """What the verdict says of what is drawn once, as much of it as has room."""
        if spot is None:
            return ""
        told = [*accumulate(spot.pieces, initial=BADGES[spot.severity] + " ")]
        shown = next((one for one in told[:0:-1] if cells(one) + 2 <= room), BADGES[spot.severity])
        return f"{shown}  "

    def _by_rounds(
        self, row: TreeRow, item: Item, gradients: ViewGradients | None
    ) -> list[GradientInfo]:
        """The gradient that enters an item in each round, or flows along one link to it."""
        if gradients is None:
            return []
        if row.kind == "definition" or row.link == ROOT:
            return gradients.rounds(item)
        link = self.scene.view.links[row.link]
        inside = self.scene.view.items[link.source].template == item.template
        return gradients.link_by_rounds(link) if inside else [gradients.link(link)]

    def _rounds(self, item: Item, infos: list[GradientInfo]) -> list[Cell]:
        """The cells of shape, value, gradient, size, bar and source of several rounds."""
        tensor = None if item.folded else self.scene.tensor(item.members[0], 0)
        source = Part(self.scene.source(item), "dim", "start")
        if not infos:
            return [self._shape(tensor), "", "", "", "", source]
        step = self.scene.scale.step(middle(infos).norm)
        ink = "dim" if step is None else STEPS[step]
        without = self.glyphs.text(odd(infos, self.glyphs.bad))
        bad = any(info.state == "non-finite" for info in infos)
        return [
            self._shape(tensor),
            "",
            Part(without, BAD_INK if bad else ""),
            Part(span(infos), ink),
            Part(strip(infos, BAR_CELLS, self.glyphs), BAD_INK if bad else ink),
            source,
        ]

    def _body(self, item: Item, info: GradientInfo | None, tensor: TensorInfo | None) -> list[Cell]:
        return [
            self._shape(tensor),
            self._value(tensor),
            *self._gradient(info, tensor),
            Part(self.scene.source(item), "dim", "start"),
        ]

    def _note(self, row: TreeRow, note: Note) -> list[Cell]:
        """The cells of an additional row of an item."""
        if note.across:
            return [self._across(f"{row.lead} ", note)]
        sign, title, words, info = self.glyphs.saved, note.title, note.remark, note.total
        if note.is_whole:
            # The number beside it is of the edge alone.
            words, sign, title = self._along(row, note), self.glyphs.edge, ""
            info = self._flow(row, self.scene.gradients)
        elif note.total is not None:
            sign = self.glyphs.sum if note.hook is None else self.glyphs.hook
            # In a comparison they are others on either side.
            of = "" if self.scene.options.sides else f" of {parts_of(note)}"
            words = note.remark or f"sum{of}" * bool(note.parts)
        return [
            (Part(f"{row.lead}{sign} ", "dim", "never"), Part(title)),
            Part(words, "dim"),
            self._shape(note.tensor),
            self._value(note.tensor, asked=True) if info is None else "",
            *self._gradient(info, note.tensor),
            Part((note.hook or "").rpartition("/")[2], "dim", "start"),
        ]

    def _along(self, row: TreeRow, note: Note) -> str:
        """From where that part comes of all that meets which the row of an item stands on."""
        if row.link == ROOT:
            others = note._replace(parts=note.parts - 1, given=note.given - 1)
            return f"given, beside {parts_of(others)}"
        scene, link = self.scene, self.scene.view.links[row.link]
        words = f"from {self._briefly(scene.view.items[link.source])}{scene.of_round(link)}"
        return f"{edges_in_words(scene, scene.to_leaf(link))} {words}".lstrip()

    def _briefly(self, item: Item) -> str:
        """What an item is called where it is but mentioned: its variable, or else its words where
        they are few, or its title."""
        words = ""
        if not item.folded and self.scene.options.names != "torch":
            variable = self.scene.graph.nodes[item.members[0]].variable
            words = visible(variable) or self.scene.expression(item)
        return words if 0 < cells(words) <= FEW_CELLS else short(self.scene.title(item))

    def _across(self, lead: str, note: Note, title: str = "") -> Cell:
        """One line across all columns: a title, a strip of the norms of what repeats, and words
        about them."""
        name = Part(self.glyphs.text(title), "bold", "never")
        words = Part(self.glyphs.text(note.remark), "cyan")
        start = Part(lead, "dim", "never")
        if not note.rounds:
            return (start, name, words)
        taken = sum(map(cells, (lead, name.text, words.text))) + len(GAP)
        room = self.scene.options.width - taken
        ends = self._ends(note, title, room)
        most = min(max(room - sum(map(cells, ends)), FEWEST_CELLS), MOST_CELLS)
        drawn = strip([one.info for one in note.rounds], most, self.glyphs)
        return (
            start,
            name,
            Part(ends[0], "dim", "never"),
            Part(drawn + GAP * bool(note.remark), "", "never"),
            Part(ends[1], "dim", "never"),
            words,
        )

    def _ends(self, note: Note, title: str, room: int) -> tuple[str, str]:
        """Which rounds stand at both ends of a strip below a title that does not say it, where
        these have names and it has room."""
        first, last = (self.glyphs.text(short(note.rounds[end].name)) for end in (0, -1))
        if not title or first.startswith("round ") or first in title:
            return "", ""
        fewest = min(len(note.rounds), MOST_CELLS) + cells(f"{first}  {last}")
        return (f"{first} ", f" {last}") if fewest <= room else ("", "")

    def _told(self, row: TreeRow, item: Item) -> Cell:
        """The user's words for an item where its row does not say enough, and what turns a leaf
        before the gradient gets there."""
        is_again = row.kind == "reference" and self.scene.is_named(item)
        # Of what is told above another gradient comes here.
        words: Parts = ()
        if not is_again:
            is_whole = row.kind != "reference"
            words = self._expression(item, self.notes(item)) if is_whole else self._words(item)
        if row.link == ROOT:
            return words or ""
        link = self.scene.view.links[row.link]
        of = ""
        if row.kind == "reference":
            # The row of an item has all that arrives.
            meant = edges_in_words(self.scene, self.scene.to_leaf(link))
            of = f" {meant}" if meant else self.scene.of_round(link)
        before = f"{self.scene.turns(link)}{of}".lstrip()
        gap = (" · " if words[0].text else " ") if words else ""
        return (Part(f"{before}{gap}", "dim", "whole"), *words) if before else words or ""

    def _expression(self, item: Item, notes: Sequence[Note] = ()) -> Parts:
        """The user's words for an item, after what it does to the gradient, or else what its notes
        say of all that arrives."""
        spot = self._spot(item)
        told = [Part(one.remark, "dim") for one in notes if one.is_whole and one.remark]
        if spot is not None:
            ink = INKS_OF[spot.severity]
            words, *more = spot.pieces
            told = [Part(words, ink), *(Part(one, ink, "whole") for one in more)]
        first, *others = self._words(item)
        if not told:
            return (first, *others)
        gap = " · " if first.text else " "
        return (*told, Part(gap + first.text, first.style), *others)

    def _words(self, item: Item) -> Parts:
        words = Part(self.scene.expression(item), "cyan")
        once = item.template is not None
        operations = self.scene.operations_of_rounds(item)
        # What the parameters get is of one call, and told of all modules or of none.
        parameters = "" if self.calls else self.scene.parameters(item)
        more: tuple[tuple[str, Literal["whole", "all"]], ...]
        more = (operations, "whole"), (parameters, "all")
        facts = [Part(f" · {text}", "dim", cut) for text, cut in more if text]
        if not once:
            return (words, *facts)
        rounds = self.scene.rounds_beside(item)
        times = Part(f"{' ' * bool(words.text and rounds)}{rounds}", "dim", "whole")
        met = meeting(self.scene, item)
        last = [Part(f" · {self.scene.only}{met}", "dim", "whole")] if met else []
        return (words, *facts, times, *last)

    def _flow(self, row: TreeRow, gradients: ViewGradients | None) -> GradientInfo | None:
        """What enters the item of a row, of the gradients of one call."""
        if gradients is None:
            return None
        if row.link == ROOT:
            return gradients.seed(row.root)
        link = self.scene.to_leaf(self.scene.view.links[row.link])
        return self._largest(row, gradients) or gradients.link(link)

    def _largest(self, row: TreeRow, gradients: ViewGradients | None) -> GradientInfo | None:
        """The largest of what several edges bring that the row is about, and not all that arrives
        at its item; None where they add up."""
        if gradients is None or row.kind == "definition":
            return None
        return gradients.largest_of(self.scene.to_leaf(self.scene.view.links[row.link]))

    def _tensor(self, row: TreeRow) -> TensorInfo | None:
        item = self.scene.view.items[row.item]
        if item.folded and row.kind == "definition" and len(self.scene.incoming[item.id]) > 1:
            # Of a group that is entered at several places no tensor is meant.
            links = (self.scene.view.links[link] for link in self.scene.incoming[item.id])
            edges = tuple(edge for link in links for edge in link.edges)
            return self.scene.tensor_of(Link(item.id, item.id, edges))
        if row.link == ROOT:
            root = self.scene.graph.roots[row.root]
            return self.scene.tensor(root.node, root.output)
        return self.scene.tensor_of(self.scene.to_leaf(self.scene.view.links[row.link]))

    def _name(self, row: TreeRow, item: Item) -> Cell:
        lead = Part(row.lead, "dim", "never")
        sign, style = self._sign(row, item)
        name = Part(self._title(row, item), style, _cut(item))
        badge = () if row.kind == "reference" else self._badge(item)
        number = Part(self._slots(row), "dim", "never")
        return (lead, *badge, Part(f"{sign} ", style, "never"), number, name, *self._type(item))

    def _slots(self, row: TreeRow) -> str:
        """Beside the names of torch which entry of ``next_functions`` the row is."""
        if row.link == ROOT or self.scene.options.names != "torch":
            return ""
        slots = self.scene.slots(self.scene.view.links[row.link])
        return f"{slots} " if slots else ""

    def _type(self, item: Item) -> tuple[Part, ...]:
        kind = self.scene.type(item)
        return (Part(f" {kind}", "dim", "whole"),) if kind else ()

    def _badge(self, item: Item) -> tuple[Part, ...]:
        """The sign of the worst finding about an item."""
        severity = self.marks.badge(item)
        if severity is None:
            return ()
        return (Part(f"{BADGES[severity]} ", INKS_OF[severity], "never"),)

    def _title(self, row: TreeRow, item: Item) -> str:
        variable = self.scene.graph.nodes[item.members[0]].variable
        if row.kind == "reference" and variable and not item.folded:
            return visible(variable) + self._output_number(row)
        title = self.scene.title(item) + self._output_number(row)
        shared = len(self.scene.incoming[item.id]) + (row.link == ROOT) > 1
        if shared and not self.scene.is_named(item):
            return f"#{item.members[0]} {title}"
        return title

    def _sign(self, row: TreeRow, item: Item) -> tuple[str, str]:
        glyphs = self.glyphs
        if row.kind == "reference":
            return f"{glyphs.root} {glyphs.again}" if row.link == ROOT else glyphs.again, "dim"
        sign, style = self.sign(item)
        if row.link == ROOT and item.kind != "leaf":
            sign = f"{glyphs.root} {sign}" if item.folded else glyphs.root
        return sign, style

    def sign(self, item: Item) -> tuple[str, str]:
        """The sign of an item's kind, and its style."""
        if item.kind == "leaf":
            return self.glyphs.leaf, "green"
        return self.glyphs.module if item.folded else self.glyphs.op, "bold"

    def _output_number(self, row: TreeRow) -> str:
        """``[1]`` where a gradient enters a node at another output than its first."""
        if row.link == ROOT:
            output = self.scene.graph.roots[row.root].output
        else:
            edges = self.scene.view.links[row.link].edges
            output = self.scene.graph.edges[edges[0]].output if len(edges) == 1 else 0
        return f"[{output}]" if output else ""

    def _shape(self, tensor: TensorInfo | None) -> Cell:
        return numbers.shape(tensor.shape) if tensor else ""

    def _value(self, tensor: TensorInfo | None, asked: bool = False) -> Cell:
        """Forward values, where there are no gradients to show, or on request."""
        asked = asked or self.scene.options.values or self.scene.backward is None
        if tensor is None or not asked:
            return ""
        return self.scene.values(tensor, tensor.shape) or ""

    def _gradient(self, info: GradientInfo | None, tensor: TensorInfo | None) -> list[Cell]:
        """The cells of gradient, size and bar."""
        if info is None:
            return ["", "", ""]
        glyphs = self.glyphs
        text = self.scene.told(info, tensor, glyphs.silent, glyphs.bad)
        ink = self.scene.scale.ink(info)
        return [
            Part(text, BAD_INK if info.state == "non-finite" else ""),
            size_cell(info, glyphs, ink),
            Part(self._bar(info), ink),
        ]

    def _bar(self, info: GradientInfo) -> str:
        place = self.scene.scale.fraction(info.norm)
        if place is None:
            return ""
        blocks = self.glyphs.blocks
        units = max(round(place * BAR_CELLS * len(blocks)), 1)
        full, rest = divmod(units, len(blocks))
        return blocks[-1] * full + (blocks[rest - 1] if rest else "")
