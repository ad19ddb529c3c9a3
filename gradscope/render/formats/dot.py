"""The drawing as text in Graphviz's DOT language; svg, png and pdf are made from it.

The output stands on top and gradients flow down, along arrows that carry their numbers.  The
graphviz package quotes; :mod:`gradscope.render.drawing.labels` writes what stands in boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import graphviz

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.labels import (
    BADGE_INKS,
    BORDER,
    FAINT,
    INK,
    LEAF_GREEN,
    LONGEST_TEXT,
    MAGENTA,
    SIGNS,
    Labels,
    box,
    short,
    text,
)
from gradscope.render.drawing.scale import tint
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Mark, Options
from gradscope.render.words import numbers
from gradscope.simplify import Item, Link
from gradscope.words import either, folding

MOST_ITEMS = 2_000
"""Layouts of more take minutes and cannot be read."""

MANY_ITEMS = 60
"""Above this, every use of a shared leaf gets its own copy: one copy would tie all ranks
together."""

MOST_LINKS = 10_000

MOST_FINDINGS = 5

MOST_NOTES = 12

LONGEST_URL = 2_000

LONGEST_TOOLTIP = 4_000
"""Characters; Graphviz refuses a file with much longer ones."""

MOST_LABELS = 150
"""With more arrows than this, their gradients stand in tooltips only."""

FONT = "Helvetica,Arial,sans-serif"
ARROW = "#7b8494"


def render(report: Report, options: Options) -> str:
    """The DOT source.

    Raises:
        GradscopeError: if there is too much to draw.
    """
    scene = Scene(report, options)
    boxes, arrows = len(scene.view.items) + len(scene.view.roots), len(scene.view.links)
    if boxes > MOST_ITEMS or arrows > MOST_LINKS:
        many = f"{boxes:,} boxes" if boxes > MOST_ITEMS else f"{arrows:,} arrows"
        what = f"{many} are too many for a picture"
        hint = f"fold more: {folding()}; or all of it: {either('-o FILE.html', 'a .html file')}"
        raise GradscopeError(what, f"at most {MOST_ITEMS:,} can be drawn: {hint}")
    return _Drawing(scene).source()


class _Drawing:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.labels = Labels(scene)
        self.copies = len(scene.view.items) > MANY_ITEMS
        self.labelled = len(scene.view.links) <= MOST_LABELS
        backward = scene.options.direction == "backward"
        self.graph = graphviz.Digraph(
            graph_attr={
                "rankdir": "TB" if backward else "BT",
                "bgcolor": "white",
                "fontname": FONT,
                "labelloc": "t",
                "labeljust": "l",
                "label": self._caption(),
                "nodesep": "0.3",
                "ranksep": "0.45",
                "pad": "0.25",
                # Operands from left to right as in the expression, where that costs no clarity.
                **({} if self.copies else {"ordering": "out"}),
            },
            node_attr={"fontname": FONT, "margin": "0.14,0.06", "height": "0.3", "color": BORDER},
            edge_attr={
                "fontname": FONT,
                "fontsize": "10",
                "fontcolor": FAINT,
                "color": ARROW,
                "arrowsize": "0.7",
                "dir": "forward" if backward else "back",
            },
        )

    def source(self) -> str:
        """All of it."""
        for item in self.scene.view.items:
            if not self._is_copied(item):
                self._draw_item(str(item.id), item)
        for root in range(len(self.scene.view.roots)):
            self._draw_seed(root)
        for index, link in enumerate(self.scene.view.links):
            self._draw_link(index, link)
        return str(self.graph.source)

    def _is_copied(self, item: Item) -> bool:
        """Whether a leaf is drawn anew beside each of its uses."""
        many = self.copies and len(self.scene.incoming[item.id]) > 1
        return many and item.kind == "leaf" and item.id not in self.scene.view.roots

    def _caption(self) -> str:
        scene = self.scene
        first = scene.graph.roots[0].node if scene.graph.roots else None
        items = [scene.view.items[item] for item in scene.view.roots[:1]]
        title = " ".join(scene.expression(item) for item in items if item.kind != "module")
        title = title or visible(scene.report.meta.target)
        place = "" if first is None else scene.place(scene.graph.nodes[first].origin)
        overlay = scene.options.overlay
        way = overlay.caption if overlay else scene.direction()
        if scene.options.direction == "forward":
            way = "values flow down, gradients up"
        words = [place, scene.rank.words(), scene.size(), way, scene.folded()]
        head = text(shorten_title(title), size=14, bold=True)
        lines = [head + text("   " + " · ".join(word for word in words if word), FAINT)]
        if scene.alarm():
            lines.append(text(f"⚠ {scene.alarm()}", MAGENTA))
        for severity, line in scene.findings()[:MOST_FINDINGS]:
            lines.append(text(f"{SIGNS[severity]} {shorten_title(line)}", BADGE_INKS[severity]))
        notes = [*filter(None, [scene.rank.others()]), *scene.report.notes]
        lines.extend(text(note, FAINT, 10) for note in notes[:MOST_NOTES])
        if len(notes) > MOST_NOTES:
            lines.append(text(f"… {len(notes) - MOST_NOTES:,} more notes", FAINT, 10))
        if scene.gradients is not None:
            lines.append(self.labels.legend())
        return box(lines).replace("<TD ", '<TD ALIGN="LEFT" ')

    def _draw_item(self, name: str, item: Item) -> None:
        scene = self.scene
        info = scene.gradients.entering(item) if scene.gradients else None
        uses = len(scene.incoming[item.id])
        if item.kind == "leaf":
            label = self.labels.leaf(item, info, uses)
        elif item.folded:
            label = self.labels.group(item, info)
        else:
            roots = [
                scene.graph.roots[i].label for i, it in enumerate(scene.view.roots) if it == item.id
            ]
            label = self.labels.operation(item, info, next(iter(roots), ""))
        style = self._style(item, info)
        link = scene.link(item)
        if link and len(link) <= LONGEST_URL:
            style["URL"] = link
        self.graph.node(name, label=label, tooltip=_plain(self._tooltip(item)), **style)

    def _style(self, item: Item, info: GradientInfo | None) -> dict[str, str]:
        """Shape says what a thing is, border its state, fill its size."""
        root = item.id in self.scene.view.roots
        words = ["filled"] if root else ["rounded", "filled"]
        style = {"shape": "box", "fillcolor": "#f7f8f9", "penwidth": "2.2" if root else "1.1"}
        if item.kind == "leaf":
            style |= {"color": LEAF_GREEN, "penwidth": "1.6", "height": "0.42"}
        if item.folded:
            style |= {"peripheries": "2", "fillcolor": "white"}
        elif info is not None:
            step = self.scene.scale.step(info.norm)
            style |= {"fillcolor": "white" if step is None else tint(step)}
        mark = self._mark(item.members)
        if mark is not None:
            style |= {"penwidth": "2", "fillcolor" if mark.fill else "color": mark.color}
        if info is not None and info.state == "non-finite":
            # Where findings name the cause, what follows from it steps back.
            width = "1.8" if self.scene.report.findings else "3"
            style |= {"color": MAGENTA, "penwidth": width, "fillcolor": "white"}
        elif info is not None and info.state != "finite":
            words.append("dashed")
            style["fillcolor"] = "white"
        severity = self.scene.badge(item)
        if severity is not None:
            style |= {"color": BADGE_INKS[severity], "penwidth": "2.8" if item.folded else "4"}
        return {**style, "style": ",".join(words)}

    def _mark(self, nodes: Iterable[int]) -> Mark | None:
        """The mark that matters most among some nodes."""
        overlay = self.scene.options.overlay
        return _heaviest(overlay.nodes if overlay else {}, nodes)

    def _tooltip(self, item: Item) -> str:
        """What a pointer finds: the full name, the place, the module, the shape."""
        scene = self.scene
        node = scene.graph.nodes[item.members[0]]
        if item.folded:
            lines = [scene.title(item), scene.expression(item)]
        else:
            tensor = scene.tensor(node.id, 0)
            lines = [
                f"#{node.id} {visible(node.op)}",
                visible(item.title) if item.kind == "leaf" else scene.expression(item),
                scene.source(item),
                visible(scene.graph.module_of(node)),
                f"{numbers.shape(tensor.shape)} {tensor.dtype}" if tensor else "",
            ]
        lines += [
            f"{finding.rule} {finding.name}: {visible(finding.message)}"
            for finding in scene.about(item)
        ]
        return " · ".join(shorten_title(line, LONGEST_TEXT) for line in lines if line)

    def _draw_seed(self, root: int) -> None:
        """The gradient that was given, as a dashed arrow from outside."""
        scene = self.scene
        if scene.gradients is None:
            return
        record = scene.graph.roots[root]
        node = scene.graph.nodes[record.node]
        name = short(record.label or node.variable or "output")
        info = scene.gradients.seed(root)
        value = self.labels.gradient(info, scene.tensor(record.node, record.output))
        seed = f"seed{root}"
        words = f"upstream ∂L/∂{name} = {value}"
        self.graph.node(seed, label=box([text(words, FAINT, 10)]), shape="plaintext", height="0.2")
        self.graph.edge(seed, str(scene.view.roots[root]), style="dashed", tooltip=" ")

    def _draw_link(self, index: int, link: Link) -> None:
        scene = self.scene
        target = scene.view.items[link.target]
        name = str(link.target)
        if self._is_copied(target):
            # Item ids are plain numbers, so this name is nobody else's.
            name = f"{link.target}.{index}"
            self._draw_item(name, target)
        words, style = self._flow(link)
        if words and self.labelled:
            style["label"] = box([text(f" {words} ", style.get("fontcolor", INK), 10)])
        # Without any, Graphviz would show its own: the ids of both ends.
        style["tooltip"] = _plain(words) or " "
        self.graph.edge(str(link.source), name, **style)

    def _flow(self, link: Link) -> tuple[str, dict[str, str]]:
        """What stands beside an arrow, and how the arrow looks."""
        scene = self.scene
        tensor = scene.tensor_of(link)
        bundled = f" ·{len(link.edges):,}" if len(link.edges) > 1 else ""
        overlay = scene.options.overlay
        mark = _heaviest(overlay.edges if overlay else {}, link.edges)
        if mark is not None:
            words = mark.words + bundled
            return words, {"color": mark.color, "fontcolor": mark.color, "penwidth": "2"}
        if scene.gradients is None:
            return (numbers.shape(tensor.shape) if tensor else "") + bundled, {}
        info = scene.gradients.link(link)
        words = self.labels.gradient(info, tensor) + bundled
        if info.state == "non-finite":
            return words, {"color": MAGENTA, "fontcolor": MAGENTA, "penwidth": "2.5"}
        if info.state != "finite":
            return words, {"style": "dashed"}
        place = scene.scale.fraction(info.norm)
        return words, {"penwidth": f"{1 + 3 * place:.2f}"} if place is not None else {}


def _plain(words: str) -> str:
    """Text of an attribute: Graphviz reads neither markup nor escapes in it."""
    shown: str = graphviz.escape(shorten_title(visible(words), LONGEST_TOOLTIP))
    return shown


def _heaviest(marks: Mapping[int, Mark], numbers: Iterable[int]) -> Mark | None:
    """The mark that matters most among some nodes or edges."""
    found = [marks[number] for number in numbers if number in marks] if marks else []
    return max(found, key=lambda mark: mark.weight, default=None)


def shorten_title(title: str, most: int = 80) -> str:
    """A caption that does not make the picture wider than its graph."""
    return title if len(title) <= most else title[: most - 1] + "…"
