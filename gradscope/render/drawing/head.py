"""The lines above a drawing on the terminal: what was looked at, what is wrong with it, what is
folded; and, in place of a drawing, the nodes with the largest or smallest gradients as a list,
whatever the shape of the graph.

Must not know what is drawn below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.scale import exceptions, extremes
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.verdict import repeats, sentences
from gradscope.render.options import Options
from gradscope.render.words.table import Cell, Column, Part, Writer
from gradscope.render.words.text import BADGES, INKS
from gradscope.simplify import Folding
from gradscope.simplify.folded import meant
from gradscope.simplify.gradients import SMALL
from gradscope.simplify.view import Item
from gradscope.words import count, either, option

MOST_FINDINGS = 5

HEAD_LINES = 6
"""Lines that stand above a drawing."""

FEWEST_LINES = 12
"""A budget below this would leave nothing to read."""


class Head(Writer):
    """The head of one scene."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.options)
        self.scene = scene

    def lines(self, calls: str = "") -> Iterator[str]:
        """All of it; ``calls`` says what is shown of several backward calls, if not one of them."""
        scene = self.scene
        yield from self.first(calls)
        if scene.backward is not None and len(scene.graph.nodes) >= SMALL:
            from gradscope.render.drawing import river

            yield from filter(None, [river.line(scene, self)])
        said = set[str]()
        for kind, rounds in repeats(scene):
            words = " · ".join(filter(None, (exceptions(rounds), extremes(rounds))))
            # Modules and the rounds that they are most of get the same.
            if words not in said:
                yield from self.wrapped(f"{scene.only}{len(rounds):,} {kind}: entering ‖g‖ {words}")
            said.add(words)
        if scene.folded():
            yield from self.wrapped(scene.folded(), "dim")

    def first(self, calls: str = "", findings: bool = True) -> Iterator[str]:
        """What is told of the whole, however it is drawn."""
        scene, glyphs = self.scene, self.glyphs
        yield self.title(scene.direction())
        # On top: in a long tree the row it is about may be far below, or left out.
        for told, severity in sentences(scene, scene.only):
            yield from self.wrapped(told, INKS[severity] if severity else "")
        known = scene.findings() if findings else []
        for severity, line in known[:MOST_FINDINGS]:
            yield self.fitted(f"{BADGES[severity]} {line}", INKS[severity])
        more = len(known) - MOST_FINDINGS
        if more > 0:
            yield glyphs.text(
                f"… {more:,} more findings: {either('gradscope doctor FILE.json', '.findings')}"
            )
        if which := calls or scene.passes():
            yield from self.wrapped(which, "dim")
        for note in scene.report.notes:
            yield from self.wrapped(visible(note))

    def title(self, last: str) -> str:
        """The program, the size of its graph, and a last word."""
        scene, leaves = self.scene, count(len(self.scene.graph.leaves), "leaf")
        return self.headed(scene.report.meta.target, scene.rank(), scene.size(), leaves, last)

    def left_out(self, nodes: int, rows: int) -> Iterator[str]:
        """How much is missing at the end, nodes or else only rows, and how to see it."""
        depth = f"{option('depth', 'N')}, {option('all')}"
        left = (nodes, "node") if nodes else (rows, "row")
        return self.more(*left, depth if self.scene.graph.calls else "")


NODE = Column("", right=True)
MODULE = Column("module", drop=2, narrowest=8, comfort=12)


def ranking(report: Report, options: Options) -> str:
    """The list, ending with a newline.

    Raises:
        GradscopeError: when no gradient flowed.
    """
    scene = Scene(report, replace(options, folding=Folding(all=True)))
    found = _ranked(scene, meant(report.graph, options.folding), options.top or 0)
    head = Head(scene)
    size = "largest" if (options.top or 0) > 0 else "smallest"
    cells = Cells(scene, head.glyphs)
    columns = cells.columns()
    shown = (_row(scene, cells, item, info) for item, info in found)
    rows = head.table([NODE, *columns[:2], MODULE, *columns[2:]], shown)
    return "\n".join((head.title(f"the {len(found):,} {size} gradients"), *rows)) + "\n"


def _ranked(scene: Scene, wanted: set[int], top: int) -> list[tuple[Item, GradientInfo]]:
    """What is not finite first, then by size; what no gradient reached is in no list."""
    if scene.gradients is None:
        raise GradscopeError(
            f"no gradients to compare: {option('top', 'N')} needs them",
            f"look with gradients: {either('gradscope backward', 'gradscope.backward(root)')}",
        )
    infos = ((item, scene.gradients.entering(item)) for item in scene.view.items)
    found = [(i, info) for i, info in infos if i.members[0] in wanted and info.norm is not None]
    sign = 1 if top < 0 else -1
    found.sort(key=lambda pair: (by_size(pair[1], sign), pair[0].id))
    return found[: abs(top)]


def by_size(info: GradientInfo, sign: int) -> tuple[bool, float]:
    """Where a gradient stands among others by size, the smallest first for a ``sign`` of 1, the
    largest for -1; what is not finite comes first either way."""
    size = float(info.norm or 0)
    return info.state != "non-finite", sign * size if math.isfinite(size) else 0.0


def _row(scene: Scene, cells: Cells, item: Item, info: GradientInfo) -> list[Cell]:
    node = scene.graph.nodes[item.members[0]]
    name, expression, *rest = cells.in_full(item, info, scene.tensor(node.id, 0))
    sign, style = cells.sign(item)
    number: Cell = Part(f"#{node.id}", "dim")
    module: Cell = Part(visible(scene.graph.module_of(node)), "", "start")
    return [number, (Part(f"{sign} ", style, "never"), *name), expression, module, *rest]
