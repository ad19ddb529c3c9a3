"""The drawing as SVG: it scales, and every part has a title for mouse and screen reader."""

from __future__ import annotations

from xml.etree import ElementTree

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing.beside import add_strip
from gradscope.render.drawing.boxes import width
from gradscope.render.drawing.graphviz import draw
from gradscope.render.drawing.scene import Scene
from gradscope.render.formats import dot
from gradscope.render.options import Options

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

ONE_LINE = 2.5
"""Points by which the baselines of one line are apart at most."""


def render(report: Report, options: Options) -> bytes:
    """The picture; see :mod:`gradscope.render.formats.dot` for what is drawn."""
    for prefix, space in (("", SVG), ("xlink", XLINK)):
        ElementTree.register_namespace(prefix, space)
    scene = Scene(report, options)
    picture = ElementTree.fromstring(draw(dot.render(report, options, scene), "svg"))
    # Graphviz titles each part with its number in the drawing, which tells nobody anything.
    for part in picture.iter(f"{{{SVG}}}g"):
        title, link = part.find(f"{{{SVG}}}title"), part.find(f"{{{SVG}}}g/{{{SVG}}}a")
        if title is not None and link is not None:
            title.text = link.get(f"{{{XLINK}}}title")
        elif title is not None:
            title.text = visible(report.meta.target) if part.get("class") == "graph" else ""
    add_strip(picture, scene)
    _fit(picture)
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
