"""The lines above a drawing on the terminal: what was looked at, what is wrong with it, what is
folded.

Must not know what is drawn below."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.render.drawing import river
from gradscope.render.drawing.cells import BAD_INK
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.strip import exceptions, extremes
from gradscope.render.drawing.verdict import repeats, verdict
from gradscope.render.words.findings import BADGES, INKS
from gradscope.render.words.table import Writer
from gradscope.words import count, either, option

MOST_FINDINGS = 5


class Head(Writer):
    """The head of one scene."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.options)
        self.scene = scene

    def lines(self, calls: str = "") -> Iterator[str]:
        """All of it; ``calls`` says what is shown of several backward calls, if not one of them."""
        scene = self.scene
        yield from self.first(calls)
        yield from filter(None, [river.line(scene, self)])
        for kind, rounds in repeats(scene):
            words = " · ".join(filter(None, (exceptions(rounds), extremes(rounds))))
            yield from self.wrapped(f"{scene.only}{len(rounds):,} {kind}: ‖g‖ {words}")
        if scene.folded():
            yield from self.wrapped(scene.folded(), "dim")

    def first(self, calls: str = "", findings: bool = True) -> Iterator[str]:
        """What is told of the whole, however it is drawn."""
        scene, glyphs = self.scene, self.glyphs
        yield self.title(scene.direction())
        # On top: in a long tree the row it is about may be far below, or left out.
        sign, ink = (f"{glyphs.bad} ", BAD_INK) if scene.alarm() else ("", "")
        if told := verdict(scene):
            yield from self.wrapped(sign + told, ink)
        known = scene.findings() if findings else []
        for severity, line in known[:MOST_FINDINGS]:
            yield self.fitted(f"{BADGES[severity]} {line}", INKS[severity])
        more = len(known) - MOST_FINDINGS
        if more > 0:
            yield glyphs.text(
                f"… {more:,} more findings: {either('gradscope doctor FILE.json', '.findings')}"
            )
        for which in filter(None, (calls or scene.passes(), scene.rank.others())):
            yield from self.wrapped(which, "dim")
        for note in scene.report.notes:
            yield from self.wrapped(visible(note))

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
