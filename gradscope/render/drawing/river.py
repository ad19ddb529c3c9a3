"""The river: how large the gradients are along the whole graph, from the loss down, as one line of
a terminal; beside a picture :mod:`gradscope.render.formats.svg` draws it.

Must not know what else is drawn."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.escaping import visible
from gradscope.model.report import Node
from gradscope.render.drawing.scale import cell, heights
from gradscope.render.drawing.scene import Scene
from gradscope.render.words import numbers
from gradscope.render.words.table import Writer
from gradscope.render.words.text import shorten
from gradscope.simplify.gradients import SMALL, ProfileRow, profile_of, zeros
from gradscope.words import count

ROWS = 24
"""Of a river, at most: in more of them what is inside of a layer hides how layers differ."""

FEWEST_CELLS = 12


def profile(scene: Scene, most: int = ROWS) -> list[ProfileRow]:
    """The rows of a scene; none where there is nothing to see, or little enough to be read in the
    graph itself."""
    if scene.backward is None or len(scene.graph.nodes) < SMALL:
        return []
    rows = profile_of(scene.graph, scene.backward, _even(scene, most))
    return rows if any(row.finite or row.bad for row in rows) else []


def _even(scene: Scene, most: int) -> int:
    """At most so many rows; of them equal blocks that are most of the graph get as many each, or
    where rows begin would show as a pattern that no gradient has."""
    size = len(scene.graph.nodes)
    repeats = (item for item in scene.view.items if item.template is None and item.rounds)
    for one in (*scene.view.templates, *repeats):
        held = sum(len(part.nodes) for part in one.rounds)
        each = most * held // (size * len(one.rounds))
        if each and 2 * held >= size:
            return round(each * len(one.rounds) * size / held)
    return most


def line(scene: Scene, writer: Writer) -> str:
    """``median ‖g‖ from the loss on ▇▆▅▄▃▂▁ 3e-9 to 1``, a row a cell, on a scale of their own; ""
    where there is no river."""
    rows = profile(scene)
    if not rows:
        return ""
    said = f"{scene.only}median ‖g‖ from the loss on  ", f"{scene.only}median ‖g‖  "
    lead, short = map(writer.glyphs.text, said)
    words = writer.glyphs.text(f"  {told(scene, rows, is_far=True)}")
    if scene.options.width - len(lead) - len(words) < FEWEST_CELLS:
        lead = short
    room = scene.options.width - len(lead)
    # What is last is said where there is room for it.
    between = writer.glyphs.text(" · ")
    while len(words) > room - FEWEST_CELLS and between in words:
        words = words.rpartition(between)[0]
    width = min(max(room - len(words), FEWEST_CELLS), ROWS)
    words = shorten(words, max(room - width, 0), writer.glyphs.ellipsis)
    rows = rows if width == ROWS else profile(scene, width)
    shown = heights([row.info for row in rows], width)
    drawn = "".join(
        writer.paint(cell(info, place, writer.glyphs), scene.scale.ink(info))
        for info, place in shown
    )
    return writer.paint(lead, "") + drawn + writer.paint(words, "")


FEW_ZEROS = 3
"""Leaves that get exactly 0 and are named; more, and operations, are counted."""


def _named(scene: Scene) -> str:
    nodes = zeros(scene.graph, scene.backward) if scene.backward is not None else []
    leaves = {leaf.node: leaf.names[0] for leaf in scene.graph.leaves if leaf.names}
    if len(nodes) <= FEW_ZEROS and all(node.id in leaves for node in nodes):
        return ", ".join(visible(leaves[node.id]) for node in nodes)
    return count(len(nodes), "node") + _module_of(scene, nodes)


def _module_of(scene: Scene, nodes: Iterable[Node]) -> str:
    """`` in layers.*.mixer``: the innermost module that all nodes are in, in any of equal layers,
    or ""."""
    made = (node for node in nodes if node.kind != "leaf")
    paths = (scene.graph.module_of(node).split(".") for node in made)
    shared: list[str] = []
    for parts in zip(*paths, strict=False):
        distinct = set(parts)
        if len(distinct) > 1 and not all(map(str.isdigit, distinct)):
            break
        shared.append("*" if len(distinct) > 1 else parts[0])
    return f" in {visible('.'.join(shared))}" if any(shared) else ""


def told(scene: Scene, rows: list[ProfileRow], is_far: bool = False) -> str:
    """How many nodes have no size; where ``is_far`` after the smallest and the largest of the
    medians that are drawn, and before how many norms are far below."""
    known = [row.middle for row in rows if row.middle is not None and not row.bad]
    ends = (min(known), max(known)) if is_far and known else ()
    words = [" to ".join(dict.fromkeys(map(numbers.number, ends)))]
    bad, zero = sum(row.bad for row in rows), sum(row.zero for row in rows)
    words += [f"✖ not finite at {count(bad, 'node')}"] if bad else []
    words += [f"0 at {_named(scene)}"] if zero else []
    words += [scene.scale.far_below] if is_far else []
    return " · ".join(filter(None, words))
