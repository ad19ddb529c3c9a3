"""The drawing as SVG: it scales, and every part has a title for mouse and screen reader.

Beside it stands the river as a strip: the loss on top, large gradients to the right, and the
modules they flow through.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing import boxes
from gradscope.render.drawing.boxes import INK, width
from gradscope.render.drawing.graphviz import draw
from gradscope.render.drawing.labels import FAINT, MAGENTA
from gradscope.render.drawing.river import profile, told
from gradscope.render.drawing.scale import STEPS, tint
from gradscope.render.drawing.scene import Scene
from gradscope.render.formats import dot
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.text import shorten
from gradscope.simplify.gradients import ProfileRow, brackets
from gradscope.simplify.grouping import hierarchy_of

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

DARK = (
    "@media (prefers-color-scheme: dark) { svg:root { filter: invert(0.93) hue-rotate(180deg); } }"
)
"""Light becomes dark and each colour keeps its hue.  Only of a picture that stands alone: a page
around it may be light."""

HALO = ".edge text { paint-order: stroke; stroke: white; stroke-width: 3px; }"
"""The words beside an arrow stay readable over another arrow, or over the border of a frame."""

ONE_LINE = 2.5
"""Points by which the baselines of one line are apart at most."""


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.formats.dot` for what is drawn."""
    for prefix, space in (("", SVG), ("xlink", XLINK)):
        ElementTree.register_namespace(prefix, space)
    scene = Scene.at_once(report, options)
    picture = ElementTree.fromstring(draw(dot.laid_out(report, options, scene), "svg"))
    # Graphviz titles each part with its number in the drawing, which tells nobody anything.
    for part in picture.iter(f"{{{SVG}}}g"):
        title, link = part.find(f"{{{SVG}}}title"), part.find(f"{{{SVG}}}g/{{{SVG}}}a")
        if title is not None and link is not None:
            title.text = link.get(f"{{{XLINK}}}title")
        elif title is not None:
            title.text = visible(report.meta.target) if part.get("class") == "graph" else ""
    add_strip(picture, scene)
    _fit(picture)
    style = Element(f"{{{SVG}}}style")
    style.text = f"{HALO} {DARK}"
    picture.insert(0, style)
    return bytes(ElementTree.tostring(picture, encoding="utf-8", xml_declaration=True))


def _fit(picture: ElementTree.Element) -> None:
    """Fit each text into the room it has, for browsers have other fonts; and put what stands on one
    line on one baseline, for Graphviz centres each text by its own height."""
    last = 0.0, 0.0
    for words in picture.iter(f"{{{SVG}}}text"):
        size, bold = float(words.get("font-size", 12)), "font-weight" in words.attrib
        words.set("textLength", f"{width(words.text or '', size, bold):.1f}")
        words.set("lengthAdjust", "spacingAndGlyphs")
        x, y = float(words.get("x", 0)), float(words.get("y", 0))
        if x > last[0] and abs(y - last[1]) < ONE_LINE:
            y = last[1]
            words.set("y", f"{y:g}")
        last = x, y


WIDTH, BRACKET, LEFT = 90, 14, 17
"""Points: all of a strip, the brackets of its modules, and where the stream begins."""

MARGIN = 18
"""Points around a strip, as Graphviz leaves around a graph."""

KEY = 12
"""Points between the lines of the key below a strip."""

NAMED_FROM = 34
"""Points of a bracket that has room for a name."""

LEAST = 100
"""Points that brackets have on average: more of them would not be told apart."""

BED = "#f3f4f6"

STREAM = "#a9bccb"
"""Without the colours of boxes, which are of what enters a part, and not of all nodes in it."""

ZERO = "#b6bcc6"
"""Of lines that stand where nothing is, and are not to be the loudest."""

ENDS_FROM = 110
"""Points of the bracket of a repeat that has room for the names of its first and last round."""


def add_strip(picture: Element, scene: Scene) -> None:
    """Make room at the left of an SVG of Graphviz, and draw the strip there."""
    left, top, width, height = map(float, picture.get("viewBox", "").split())
    tall = height - 4 * MARGIN - KEY
    rows = profile(scene)
    if not rows:
        return
    room = WIDTH + 2 * MARGIN
    picture.set("viewBox", f"{left - room:g} {top:g} {width + room:g} {height:g}")
    picture.set("width", f"{width + room:g}pt")
    ground = {"x": f"{left - room:g}", "y": f"{top:g}", "height": f"{height:g}"}
    SubElement(picture, "rect", {**ground, "width": f"{room + 1:g}", "fill": "white"})
    place = f"translate({left - room + MARGIN:g} {top + 2 * MARGIN:g})"
    font = {"font-family": "Helvetica,Arial,sans-serif", "class": "river"}
    _Strip(scene, rows, tall).draw(SubElement(picture, "g", {"transform": place, **font}))


class _Strip:
    """The strip beside a picture, ``height`` points high."""

    def __init__(self, scene: Scene, rows: list[ProfileRow], height: float) -> None:
        self.scene = scene
        self.rows = rows
        self.height = height
        self.tall = height / len(rows)
        self.paths: dict[str, str] = {}

    def draw(self, into: Element) -> None:
        """Append all of it to a group whose origin is the strip's upper left corner."""
        words = f"median ‖g‖ from the loss on, {told(self.scene, self.rows, is_far=True)}"
        SubElement(into, "title").text = words
        bed = {"x": f"{LEFT}", "width": f"{WIDTH - LEFT}", "height": f"{self.height:.1f}"}
        SubElement(into, "rect", {**bed, "fill": BED})
        median = "M"
        for number, row in enumerate(self.rows):
            self._draw_row(number, row)
            y = (number + 0.5) * self.tall
            known = row.middle is not None
            median += f"{self._x(row.middle or 0):.1f} {y:.1f}L" if known else "M"
        marks = (MAGENTA, ZERO, INK)  # over the streams of all rows
        for color, path in sorted(self.paths.items(), key=lambda one: one[0] in marks):
            SubElement(into, "path", {"d": path, "fill": color})
        # A gap ends one line, and the next one begins.
        lines = "".join(f"M{line[:-1]}" for line in median.split("M") if line)
        SubElement(into, "path", {"d": lines, "fill": "none", "stroke": INK})
        self._brackets(into)
        (low, high), below = self.scene.scale.ends, f"{self.height + 11:.1f}"
        for end, x, side in ((low, LEFT, "start"), (high, WIDTH, "end")):
            _text(into, numbers.number(end), {"x": f"{x}", "y": below, "text-anchor": side})
        for words, y in (("‖g‖ of all nodes,", -17), ("loss on top", -5)):
            _text(into, words, {"x": f"{LEFT}", "y": f"{y}"})
        shown = [("— median", LEFT, 2), ("▮ 5–95 %", LEFT, 3)]
        if any(row.leaf is not None for row in self.rows):
            shown.append(("· leaf", WIDTH, 2))
        if any(row.zero for row in self.rows):
            shown.append(("┊ zero", WIDTH, 3))
        for words, x, line in shown:
            place = {"x": f"{x}", "y": f"{self.height + line * KEY:.1f}", "fill": INK}
            _text(into, words, place | {"text-anchor": "end" if x == WIDTH else "start"})

    def _draw_row(self, number: int, row: ProfileRow) -> None:
        """The stream; over it what is not finite, zeros as lines by
        their share of the nodes, and the leaves as a dot."""
        y, tall = number * self.tall, self.tall
        if row.low is not None and row.middle is not None and row.high is not None:
            low, high = self._x(row.low), self._x(row.high)
            self._add(STREAM, min(low, high - 2), y, max(high - low, 2), tall)
        if row.bad:
            self._add(MAGENTA, LEFT, y, WIDTH - LEFT, tall)
        elif row.zero:
            room = (WIDTH - LEFT) * row.zero / (row.zero + row.finite)
            for x in range(0, int(room), 4):
                self._add(ZERO, LEFT + x, y, 1, tall)
        if row.leaf is not None:
            self._add(INK, self._x(row.leaf) - 1.5, y + tall / 2 - 1.5, 3, 3)

    def _add(self, color: str, x: float, y: float, wide: float, tall: float) -> None:
        bar = f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h{-wide:.1f}Z"
        self.paths[color] = self.paths.get(color, "") + bar

    def _x(self, norm: float) -> float:
        return LEFT + max((self.scene.scale.fraction(norm) or 0.0) * (WIDTH - LEFT), 1.0)

    def _brackets(self, into: Element) -> None:
        size, end = len(self.scene.graph.nodes), 0.0
        known = hierarchy_of(self.scene.graph)
        found = brackets(known, LEAST * size / self.height)
        for number, (first, behind, group) in enumerate(found):
            top = max(first * self.height / size, end)
            end = max(behind * self.height / size, end)
            tall = end - top
            if tall < 1:
                continue
            box = {"y": f"{top:.1f}", "width": f"{BRACKET - 1}", "height": f"{tall - 1:.1f}"}
            fill = tint(len(STEPS) // 2 - 1 - number % 2)
            bar = SubElement(into, "rect", {**box, "rx": "2", "fill": fill})
            times = f" ×{group.count:,}" if group.count > 1 else ""
            name = visible(group.title or group.label) + times
            SubElement(bar, "title").text = shorten(name, boxes.LONGEST_TEXT, "…")
            if tall >= NAMED_FROM:
                middle = f"translate({BRACKET / 2 + 3} {top + tall / 2:.1f}) rotate(-90)"
                room = tall - 6 - 40 * (group.count > 1 and tall >= ENDS_FROM)
                shown = _fitting(name, room)
                _text(into, shown, {"transform": middle, "text-anchor": "middle"})
            if group.count > 1 and tall >= ENDS_FROM:
                names = known.round_names(group.id)
                for round_name, y in ((names[0], top + 9), (names[-1], end - 4)):
                    at = {"x": f"{(BRACKET - 1) / 2}", "y": f"{y:.1f}", "text-anchor": "middle"}
                    short_name = re.sub(r",000$", "k", re.sub(r".*[^\d,]", "", round_name))
                    _text(into, short_name, at | {"font-size": "8"})


def _fitting(name: str, room: float) -> str:
    """A name, or so much of the end of a path as a bracket of so many points has room for."""
    words = [name, *(f"…{name[dot.end() :]}" for dot in re.finditer(r"\.(?!\*)", name))]
    fits = (one for one in words if boxes.width(one, 10) <= room)
    return next(fits, "") or shorten(name, int(room / boxes.width("n", 10)), "…")


def _text(into: Element, words: str, style: dict[str, str]) -> None:
    style = {"font-size": "10", "fill": FAINT, **style}
    SubElement(into, "text", style).text = words
