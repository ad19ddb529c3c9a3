"""The nodes with the largest or smallest gradients as a list, whatever the shape of the graph.

Must not know of folding: every row is one node."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.head import Head
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words.table import Cell, Column, Part
from gradscope.simplify import Folding, Item, meant
from gradscope.words import either, option

NODE = Column("", right=True)
MODULE = Column("module", drop=2, narrowest=8, comfort=12)


def render(report: Report, options: Options) -> str:
    """The list, ending with a newline.

    Raises:
        GradscopeError: when no gradient flowed.
    """
    return "\n".join(_lines(report, options)) + "\n"


def _lines(report: Report, options: Options) -> Iterator[str]:
    scene = Scene(report, replace(options, folding=Folding(all=True)))
    found = _ranked(scene, meant(report.graph, options.folding), options.top or 0)
    head = Head(scene)
    size = "largest" if (options.top or 0) > 0 else "smallest"
    yield head.title(f"the {len(found):,} {size} gradients")
    cells = Cells(scene, head.glyphs)
    columns = cells.columns()
    shown = (_row(scene, cells, item, info) for item, info in found)
    yield from head.table([NODE, *columns[:2], MODULE, *columns[2:]], shown)


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
    number: Cell = (Part(f"#{node.id}", "dim"),)
    module: Cell = (Part(visible(scene.graph.module_of(node)), "", "start"),)
    return [number, (Part(f"{sign} ", style, "never"), *name), expression, module, *rest]
