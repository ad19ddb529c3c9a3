"""The river as a strip beside an SVG of Graphviz: the loss on top, large gradients to the right,
and the modules they flow through.

Must not know what else is drawn."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from gradscope.escaping import visible
from gradscope.render.drawing import boxes
from gradscope.render.drawing.labels import FAINT, GREY, INK, MAGENTA
from gradscope.render.drawing.river import profile, told
from gradscope.render.drawing.scale import INKS, STEPS, tint
from gradscope.render.drawing.scene import Scene
from gradscope.render.words import numbers
from gradscope.render.words.text import shorten
from gradscope.simplify import hierarchy_of
from gradscope.simplify.profile import ProfileRow, brackets

WIDTH, BRACKET, GAP = 90, 14, 3
"""Points: all of a strip beside a picture, the brackets of its modules, and between two things."""

MARGIN = 18
"""Points around a strip, as Graphviz leaves around a graph."""

MOST_ROWS = 160
THICKNESS = 4
"""Points that a row has at least: a strip beside a small picture has fewer rows."""

NAMED_FROM = 34
"""Points of a bracket that has room for a name."""

LEAST = 100
"""Points that brackets have on average: more of them would not be told apart."""

BED = "#f3f4f6"


def add_strip(picture: Element, scene: Scene) -> None:
    """Make room at the left of an SVG of Graphviz, and draw the strip there."""
    left, top, width, height = map(float, picture.get("viewBox", "").split())
    tall = height - 2 * MARGIN
    rows = profile(scene, min(MOST_ROWS, int(tall / THICKNESS)))
    if not rows:
        return
    room = WIDTH + 2 * MARGIN
    picture.set("viewBox", f"{left - room:g} {top:g} {width + room:g} {height:g}")
    picture.set("width", f"{width + room:g}pt")
    place = {"x": f"{left - room:g}", "y": f"{top:g}"}
    size = {"width": f"{room + 1:g}", "height": f"{height:g}"}
    picture.append(Element("rect", {**place, **size, "fill": "white"}))
    _Strip(scene, rows, tall - 2 * MARGIN).draw(
        SubElement(
            picture,
            "g",
            {
                "transform": f"translate({left - room + MARGIN:g} {top + 2 * MARGIN:g})",
                "class": "river",
                "font-family": "Helvetica,Arial,sans-serif",
                "font-size": "10",
            },
        )
    )


class _Strip:
    """The strip beside a picture, ``height`` points high."""

    def __init__(self, scene: Scene, rows: list[ProfileRow], height: float) -> None:
        self.scene = scene
        self.rows = rows
        self.height = height
        self.tall = height / len(rows)
        self.left = BRACKET + GAP

    def draw(self, into: Element) -> None:
        """Append all of it to a group whose origin is the strip's upper left corner."""
        words = f"‖g‖ in backward order, {told(self.scene, self.rows)}"
        SubElement(into, "title").text = words
        room = WIDTH - self.left
        bed = {"x": f"{self.left}", "width": f"{room}", "height": f"{self.height:.1f}"}
        SubElement(into, "rect", {**bed, "fill": BED})
        for (color, opacity), path in self._flow().items():
            SubElement(into, "path", {"d": path, "fill": color, "opacity": opacity})
        line = {"d": self._median(), "fill": "none", "stroke": INK, "stroke-width": "1"}
        SubElement(into, "path", line)
        for color, path in self._marks().items():
            SubElement(into, "path", {"d": path, "fill": color})
        self._brackets(into)
        scale = self.scene.scale
        small, large = (
            numbers.number(float(f"{10 ** min(end, 308):.1g}")) for end in (scale.low, scale.high)
        )
        y = f"{self.height + 11:.1f}"
        _text(into, small, {"x": f"{self.left}", "y": y})
        _text(into, large, {"x": f"{WIDTH}", "y": y, "text-anchor": "end"})
        _text(into, "‖g‖ by depth", {"x": f"{self.left}", "y": "-5"})

    def _x(self, norm: float) -> float:
        place = self.scene.scale.fraction(norm) or 0.0
        return self.left + max(place * (WIDTH - self.left), 1.0)

    def _bar(self, row: int, start: float, end: float) -> str:
        y, tall = row * self.tall, self.tall
        return f"M{start:.1f} {y:.1f}H{end:.1f}V{y + tall:.1f}H{start:.1f}Z"

    def _flow(self) -> dict[tuple[str, str], str]:
        """The stream in the colour of its median, and pale what is left of it."""
        found: dict[tuple[str, str], str] = {}
        for number, row in enumerate(self.rows):
            if row.low is None or row.middle is None or row.high is None:
                continue
            color = INKS[self.scene.scale.step(row.middle) or 0]
            low, high = self._x(row.low), self._x(row.high)
            for opacity, start, end in (("0.3", self.left, low), ("1", min(low, high - 2), high)):
                bar = self._bar(number, start, end)
                found[color, opacity] = found.get((color, opacity), "") + bar
        return found

    def _median(self) -> str:
        path, before = "", False
        for number, row in enumerate(self.rows):
            if row.middle is not None:
                y = (number + 0.5) * self.tall
                path += f"{'L' if before else 'M'}{self._x(row.middle):.1f} {y:.1f}"
            before = row.middle is not None
        return path

    def _marks(self) -> dict[str, str]:
        """What has no size: not finite over the whole width; zeros as a comb of lines by their
        share of the nodes; and the leaves as dots."""
        bad = zero = dots = ""
        for number, row in enumerate(self.rows):
            y = number * self.tall
            if row.bad:
                bad += self._bar(number, self.left, WIDTH)
            elif row.zero:
                room = (WIDTH - self.left) * row.zero / (row.zero + row.finite)
                zero += "".join(
                    f"M{self.left + x} {y:.1f}h1v{self.tall:.1f}h-1Z"
                    for x in range(0, int(room), 4)
                )
            if row.leaf is not None:
                dots += f"M{self._x(row.leaf) - 1:.1f} {y + self.tall / 2 - 1:.1f}h2v2h-2Z"
        marks = {MAGENTA: bad, GREY: zero, INK: dots}
        return {color: path for color, path in marks.items() if path}

    def _brackets(self, into: Element) -> None:
        size, end = len(self.scene.graph.nodes), 0.0
        hierarchy = hierarchy_of(self.scene.graph)
        for number, one in enumerate(brackets(hierarchy, LEAST * size / self.height)):
            top = max(one.first * self.height / size, end)
            end = max(one.behind * self.height / size, end)
            if end - top < 1:
                continue
            box = {"width": f"{BRACKET - 1}", "height": f"{end - top - 1:.1f}", "rx": "2"}
            fill = tint(len(STEPS) // 2 - 1 - number % 2, 0.8)
            bar = SubElement(into, "rect", {"y": f"{top + 0.5:.1f}", **box, "fill": fill})
            times = f" ×{one.group.count:,}" if one.group.count > 1 else ""
            name = visible(one.group.title or one.group.label) + times
            SubElement(bar, "title").text = shorten(name, boxes.LONGEST_TEXT, "…")
            letters = int((end - top - 6) / boxes.width("n", 10))
            if end - top >= NAMED_FROM:
                middle = f"translate({BRACKET / 2 + 3} {(top + end) / 2:.1f}) rotate(-90)"
                shown = shorten(name, letters, "…", keep_end=True)
                _text(into, shown, {"transform": middle, "text-anchor": "middle"})


def _text(into: Element, words: str, style: dict[str, str]) -> None:
    style = {"font-size": "10", "fill": FAINT, **style}
    SubElement(into, "text", style).text = words
