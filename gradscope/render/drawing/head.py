"""The lines above a drawing on the terminal: what was looked at, what is wrong with it, what is
folded.

Must not know what is drawn below."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.render.drawing import river
from gradscope.render.drawing.cells import BAD_INK
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.strip import Round, exceptions, extremes
from gradscope.render.words.findings import BADGES, INKS
from gradscope.render.words.table import Writer
from gradscope.simplify import Item
from gradscope.words import count, either, option

MOST_FINDINGS = 5

FEWEST_BLOCKS = 3
"""Modules of one class of which the largest and smallest gradient are named."""


class Head(Writer):
    """The head of one scene."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.options)
        self.scene = scene

    def lines(self, calls: str = "") -> Iterator[str]:
        """All of it; ``calls`` says what is shown of several backward calls, if not one of them."""
        scene, glyphs = self.scene, self.glyphs
        yield self.title(scene.direction())
        # The alarm stands on top: in a long tree the row it is about may be far below, or left out.
        if scene.alarm():
            yield from self.wrapped(f"{glyphs.bad} {scene.alarm()}", BAD_INK)
        for severity, line in list(scene.findings())[:MOST_FINDINGS]:
            yield self.fitted(f"{BADGES[severity]} {line}", INKS[severity])
        more = len(scene.report.findings) - MOST_FINDINGS
        if more > 0:
            yield glyphs.text(
                f"… {more:,} more findings: {either('gradscope doctor FILE.json', '.findings')}"
            )
        for which in filter(None, (calls or scene.passes(), scene.rank.others())):
            yield from self.wrapped(which, "dim")
        for note in scene.report.notes:
            yield from self.wrapped(visible(note))
        yield from filter(None, [river.line(scene, self)])
        for kind, blocks in _blocks(scene):
            words = " · ".join(filter(None, (exceptions(blocks), extremes(blocks))))
            yield from self.wrapped(f"{scene.only}{len(blocks):,} {kind}: ‖g‖ {words}")
        if scene.folded():
            yield from self.wrapped(scene.folded(), "dim")

    def title(self, last: str) -> str:
        """The program, the size of its graph, and a last word."""
        leaves = len(self.scene.graph.leaves)
        words = [
            visible(self.scene.report.meta.target),
            self.scene.rank.words(),
            self.scene.size(),
            count(leaves, "leaf"),
            last,
        ]
        return self.fitted(" · ".join(word for word in words if word), "bold")

    def more(self, nodes: int) -> str:
        """How much is missing at the end, and how to see it."""
        ways = option("all")
        if self.scene.graph.calls:
            ways = f"{option('depth', 'N')}, {ways}"
        return self.glyphs.text(f"… {count(nodes, 'more node')}: {ways}")


def _blocks(scene: Scene) -> Iterator[tuple[str, list[Round]]]:
    """The repeats that are drawn once, or else the class of which most of the graph is made, with
    the gradient that enters each of their modules; those that are too few to compare are left
    out."""
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        if len(rounds) >= FEWEST_BLOCKS:
            yield visible(frame.type or frame.title), rounds
    if scene.view.templates or scene.gradients is None:
        return
    alike: dict[str, list[Item]] = {}
    for item in scene.view.items:
        if item.kind == "module":
            alike.setdefault(item.type, []).append(item)
    for kind, items in alike.items():
        most = 2 * sum(len(item.members) for item in items) > len(scene.graph.nodes)
        if most and len(items) >= FEWEST_BLOCKS:
            yield (
                visible(kind),
                [Round(item.title, scene.gradients.entering(item)) for item in items],
            )
