"""The drawing as text in Graphviz's DOT language; svg, png and pdf are made from it.

The output stands on top and gradients flow down, along arrows that carry their numbers.  The
graphviz package quotes; :mod:`gradscope.render.drawing.labels` writes what stands in boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import graphviz

from gradscope.errors import GradscopeError
from gradscope.escaping import visible
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.boxes import INK, LONGEST_TEXT, block, box, text
from gradscope.render.drawing.facts import mark_of, most_saved, saved
from gradscope.render.drawing.graphviz import side_by_side
from gradscope.render.drawing.labels import (
    BADGE_INKS,
    BORDER,
    FAINT,
    LEAF_GREEN,
    MAGENTA,
    TEAL,
    Labels,
    short,
)
from gradscope.render.drawing.scale import STEPS, tint
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.text import shorten
from gradscope.simplify.at_once import longest_way
from gradscope.simplify.view import Item, Link, View
from gradscope.words import either, folding

MOST_BESIDE = 8
"""More siblings than this are wrapped."""

NARROWEST = 6
"""Siblings of a row at least."""


def steps(view: View) -> Iterator[tuple[int, int]]:
    """Pairs of items, of which the second is to stand below the first.

    Siblings have the same items above them and lead to the same ones, but for leaves of their own,
    which stand in their row with them.
    """
    incoming, outgoing = view.incoming(), view.outgoing()
    ends = [[view.links[link].target for link in links] for links in outgoing]
    own = [[end for end in some if len(incoming[end]) == 1 and not ends[end]] for some in ends]
    siblings: dict[object, list[int]] = {}
    for item in view.items:
        if item.template is None and item.id not in view.roots:
            above = frozenset(view.links[link].source for link in incoming[item.id])
            below = frozenset(ends[item.id]) - frozenset(own[item.id])
            siblings.setdefault((above, below), []).append(item.id)
    for alike in siblings.values():
        if len(alike) > MOST_BESIDE:
            length = max(NARROWEST, math.isqrt(len(alike)))
            rows = [alike[start : start + length] for start in range(0, len(alike), length)]
            for row, next_row in pairwise(rows):
                for upper, lower in zip(row, next_row, strict=False):
                    yield (own[upper] or [upper])[0], lower


MOST_ITEMS = 2_000
"""Layouts of more take minutes and cannot be read."""

MANY_ITEMS = 60
"""Above this, every use of a shared leaf gets its own copy: one copy would tie all ranks
together."""

FEW_SHARED = 4
"""And so it does where more leaves than this are shared, as by two calls of a network."""

MOST_LINKS = 10_000

LONGEST_URL = 2_000

LONGEST_TOOLTIP = 4_000
"""Characters; Graphviz refuses a file with much longer ones."""

MOST_LABELS = 150
"""With more arrows than this, their gradients stand in tooltips only."""

FONT = "Helvetica,Arial,sans-serif"
ARROW = "#7b8494"
GROUND = "#f3f6f8"
FRAME = {
    "style": "rounded,filled",
    "fillcolor": GROUND,
    "color": TEAL,
    "penwidth": "1.4",
    "margin": "14",
    "tooltip": " ",
}
"""Around what is drawn once for many rounds."""

EXIT = {"shape": "plaintext", "fontsize": "10", "fontcolor": FAINT, "height": "0.2"}

ONWARDS = "to the next"
"""Where an arrow out of a frame leads."""

CAPTION = {"labelloc": "t", "labeljust": "l"}

STRAIGHT = "12"
"""How much straighter than others the arrows are drawn of the longest way, the spine of a picture:
a weight of Graphviz, for which others have 1."""


def render(report: Report, options: Options) -> str:
    """The DOT source, with frames for what is drawn once beside the way of the gradient.

    Raises:
        GradscopeError: if there is too much to draw.
    """
    return _Drawing(report, options, None).source()


def laid_out(report: Report, options: Options, scene: Scene | None = None) -> str:
    """The DOT source of a picture: what is drawn once has a layout of its own, for Graphviz gives
    rows in common to all that it lays out together.  Of a ``scene`` that has its river beside it,
    without one in the caption.

    Raises:
        GradscopeError: if there is too much to draw, or if Graphviz is missing, or fails.
    """
    drawing = _Drawing(report, options, scene)
    return drawing.in_parts() if drawing.frames else drawing.source()


class _Drawing:
    def __init__(self, report: Report, options: Options, scene: Scene | None) -> None:
        river = scene is None
        self.scene = scene = scene or Scene.at_once(report, options)
        boxes, arrows = len(scene.view.items) + len(scene.view.roots), len(scene.view.links)
        if boxes > MOST_ITEMS or arrows > MOST_LINKS:
            which = f"{boxes:,} boxes" if boxes > MOST_ITEMS else f"{arrows:,} arrows"
            what = f"{which} are too many for a picture"
            hint = f"fold more: {folding()}; or all of it: {either('-o FILE.html', 'a .html file')}"
            raise GradscopeError(what, f"at most {MOST_ITEMS:,} can be drawn: {hint}")
        self.labels = Labels(scene)
        self.caption = self.labels.caption(river)
        shared = [one for one in scene.view.items if len(scene.incoming[one.id]) > 1]
        many = sum(one.kind == "leaf" for one in shared)
        self.copies = len(scene.view.items) > MANY_ITEMS or many > FEW_SHARED
        self.labelled = len(scene.view.links) <= MOST_LABELS
        self.most_saved = most_saved(scene)
        sides = scene.view.sides
        self.up, self.across = (sides.up, sides.across) if sides else (frozenset[int](), ())
        self.straight = frozenset[int]() if sides else longest_way(scene.view)
        self.ends = scene.view.outgoing()
        if sides:
            self.ends = [self._outside(links) for links in self.ends]
        self.way = self._digraph(linelength="0")
        self.frames = [self._digraph(linelength="0") for _ in scene.view.templates]
        self._draw()

    def _digraph(self, **more: str) -> graphviz.Digraph:
        return graphviz.Digraph(
            graph_attr={
                "bgcolor": "white",
                "fontname": FONT,
                "nodesep": "0.3",
                "ranksep": "0.32",
                "pad": "0.25",
                **more,
            },
            node_attr={"fontname": FONT, "margin": "0.14,0.06", "height": "0.3", "color": BORDER},
            edge_attr={
                "fontname": FONT,
                "fontsize": "10",
                "fontcolor": FAINT,
                "color": ARROW,
                "arrowsize": "0.7",
            },
        )

    def source(self) -> str:
        """All of it, to be laid out together."""
        whole = self._digraph(label=self.caption, **CAPTION)
        whole.body += self.way.body
        above = "seed0" if self.scene.gradients and self.scene.view.roots else ""
        above = above or self._node(next(iter(self.scene.view.roots), 0))
        for number, frame in enumerate(self.frames):
            whole.body += frame.body
            # The first frame is at the right of what is on top, each other below the one before.
            beside = {} if number else {"minlen": "0", "weight": "0"}
            whole.edge(above, f"head{number}", style="invis", **beside)
            above = str([one.id for one in self.scene.view.items if one.template == number][-1])
        return str(whole.source)

    def in_parts(self) -> str:
        """All of it, each frame with a layout of its own."""
        whole = self._digraph(label=self.caption, layout="nop2", **CAPTION)
        whole.body += side_by_side(str(one.source) for one in (self.way, *self.frames))
        return str(whole.source)

    def _draw(self) -> None:
        for number, template in enumerate(self.scene.view.templates):
            self._draw_template(number, template)
            self._draw_frame(number, template)
        for item in self.scene.view.items:
            if not self._is_copied(item) and item.template is None:
                self._draw_item(self.way, str(item.id), item)
        for upper, lower in steps(self.scene.view):
            self.way.edge(str(upper), str(lower), style="invis")
        for root in range(len(self.scene.view.roots)):
            self._draw_seed(root)
        for index, link in enumerate(self.scene.view.links):
            self._draw_link(index, link)
        for index in self.across:
            link = self.scene.view.links[index]
            with self.way.subgraph() as row:
                row.attr(rank="same")
                row.node(str(link.source))
                row.node(str(link.target))

    def _draw_template(self, number: int, template: Item) -> None:
        """The box of what is drawn once, in the way of all rounds."""
        style = {"style": "rounded,filled", "fillcolor": GROUND, "color": TEAL, "penwidth": "1.4"}
        if severity := self.labels.marks.badge(template):
            style |= {"color": BADGE_INKS[severity], "penwidth": "2.8"}
        label, tip = self.labels.frame(template), _plain(template.title)
        self.way.node(f"whole{number}", label=label, shape="box", tooltip=tip, **style)

    def _draw_frame(self, number: int, template: Item) -> None:
        """A frame around what is in each round, beside the way: in it a picture would be as high as
        both together.  In it stands where each arrow leads that leaves it."""
        items = [item for item in self.scene.view.items if item.template == number]
        ids, links = {item.id for item in items}, self.scene.view.links
        head, graph = f"head{number}", self.frames[number]
        with graph.subgraph(name=f"cluster{number}") as frame:
            frame.attr(label="", **FRAME)
            words = self.labels.inside(template)
            frame.node(head, label=words, shape="plaintext", tooltip=_plain(template.title))
            for item in items:
                if not self._is_copied(item):
                    self._draw_item(frame, str(item.id), item)
            # What leaves keeps its order, for it has a place in the last rank.
            with frame.subgraph() as last:
                last.attr(rank="max")
                leaving = (i for item in items for i in self.ends[item.id] if self._leaves(i))
                exits = {self._exit(link): link for link in map(links.__getitem__, leaving)}
                for name, link in exits.items():
                    goes_on = link.source in self.scene.carried
                    words = f"{ONWARDS}; after the last:" if goes_on else "to"
                    where = _plain(f"{words} {self._name_of(link.target)}")
                    last.node(name, label=where, tooltip=where, **EXIT)
                onwards = [one for item, one in self.scene.to_next_round.items() if item in ids]
                if onwards:
                    last.node(f"next{number}", label=ONWARDS, tooltip=" ", **EXIT)
        graph.edge(head, str(items[0].id), tooltip=" ", weight=STRAIGHT)
        for link in onwards:
            graph.edge(str(link.source), f"next{number}", **self._words(*self.labels.flow(link)))

    def _exit(self, link: Link) -> str:
        """The node that tells where what leaves a frame along a link goes on to."""
        frame = self.scene.view.items[link.source].template
        goes_on = "on" if link.source in self.scene.carried else ""
        return f"exit{goes_on}{frame}to{self._node(link.target)}"

    def _onwards(self, link: Link, style: dict[str, str]) -> dict[str, str]:
        """How an arrow out of a frame looks: of all rounds, where it leads to the next one, else as
        the one that leaves the last, which has its number outside."""
        carried = self.scene.carried.get(link.source)
        if carried is None or sum(map(self._leaves, self.ends[link.source])) > 1:
            return {**style, "label": ""}
        every = Link(link.source, link.source, (*carried, *link.edges))
        return self._words(*self.labels.flow(every))

    def _name_of(self, item: int) -> str:
        """What an item is called, in short, or what is drawn once and holds it."""
        one = self.scene.view.items[item]
        if one.template is None:
            return short(self.scene.title(one), keep_end=True)
        return short(self.scene.view.templates[one.template].title, keep_end=True)

    def _of(self, item: Item) -> graphviz.Digraph:
        """The graph that an item is drawn in."""
        return self.way if item.template is None else self.frames[item.template]

    def _node(self, item: int) -> str:
        """The node of an item for what comes from elsewhere, or goes there."""
        inside = self.scene.view.items[item].template
        return str(item) if inside is None else f"whole{inside}"

    def _outside(self, links: list[int]) -> list[int]:
        """Without those across, which leave at the side, and with leaves out of their way."""
        view = self.scene.view

        def place(index: int) -> bool:
            link = view.links[index]
            return (view.items[link.target].kind == "leaf") != (link.source in self.up)

        return sorted((index for index in links if index not in self.across), key=place)

    def _is_copied(self, item: Item) -> bool:
        """Whether a leaf is drawn anew beside each of its uses."""
        many = self.copies and len(self.scene.incoming[item.id]) > 1
        return many and item.kind == "leaf" and item.id not in self.scene.view.roots

    def _draw_item(self, graph: graphviz.Digraph, name: str, item: Item) -> None:
        scene = self.scene
        info = scene.gradients.entering(item) if scene.gradients else None
        links = (scene.view.links[index] for index in scene.incoming[item.id])
        uses = sum(len(link.edges) if item.template is None else 1 for link in links)
        if item.kind == "leaf":
            label = self.labels.leaf(item, info, uses)
        elif item.folded:
            label = self.labels.group(item, info)
        else:
            roots = [
                scene.graph.roots[i].label for i, it in enumerate(scene.view.roots) if it == item.id
            ]
            label = self.labels.operation(
                item, info, next(iter(roots), ""), len(self.ends[item.id])
            )
        style = self._style(item, info)
        if self._has_outlets(item):
            style["margin"] = "0.14,0"
        link = scene.link(item)
        if link and len(link) <= LONGEST_URL:
            style["URL"] = link
        graph.node(name, label=label, tooltip=_plain(self._tooltip(item)), **style)

    def _style(self, item: Item, info: GradientInfo | None) -> dict[str, str]:
        """Shape says what a thing is, border its state, fill its size."""
        root = item.id in self.scene.view.roots
        words = ["filled"] if root else ["rounded", "filled"]
        style = {"shape": "box", "fillcolor": "#f7f8f9", "penwidth": "2.2" if root else "1.1"}
        if item.kind in ("leaf", "leaves"):
            style |= {"color": LEAF_GREEN, "penwidth": "1.6", "height": "0.42"}
        if item.folded:
            style |= {"peripheries": "2", "fillcolor": "white"}
        elif info is not None:
            each = self.labels.by_rounds(item) or [info]
            steps = [step for one in each if (step := self.scene.scale.step(one.norm)) is not None]
            # From the first round to the last, as its bars go.
            ends = dict.fromkeys(tint(step) for step in (*steps[:1], *steps[-1:]))
            style |= {"fillcolor": ":".join(ends) or "white"}
        if saved(self.scene, item):
            share = saved(self.scene, item) / self.most_saved
            typical = len(STEPS) // 2
            style["fillcolor"] = tint(typical + math.ceil(share * (len(STEPS) - 1 - typical)))
        mark = mark_of(self.scene, item)
        if mark is not None and mark.color:
            style |= {
                "penwidth": "4" if mark.more else "2",
                "fillcolor" if mark.fill else "color": mark.color,
            }
        if info is not None and info.state == "non-finite":
            # Where the cause is marked, what follows from it steps back.
            width = "1.8" if self.scene.blame.badges else "3"
            style |= {"color": MAGENTA, "penwidth": width, "fillcolor": "white"}
        elif info is not None and info.state != "finite":
            words.append("dashed")
            style["fillcolor"] = "white"
        severity = self.labels.marks.badge(item)
        if severity is not None:
            style |= {"color": BADGE_INKS[severity], "penwidth": "2.8" if item.folded else "4"}
        return {**style, "style": ",".join(words)}

    def _has_outlets(self, item: Item) -> bool:
        """Whether each of its arrows has its own place at the border: operands go from left to
        right as in the expression, which Graphviz's ``ordering`` does not do within frames."""
        return len(self.ends[item.id]) > 1 and not item.folded

    def _leaves(self, index: int) -> bool:
        """Whether a link leads out of a frame."""
        link, items = self.scene.view.links[index], self.scene.view.items
        inside = items[link.source].template
        return inside is not None and inside != items[link.target].template

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
        return " · ".join(shorten(line, LONGEST_TEXT, "…") for line in lines if line)

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
        self.way.node(seed, label=box([text(words, FAINT, 10)]), shape="plaintext", height="0.2")
        into = self._node(scene.view.roots[root])
        self.way.edge(seed, into, style="dashed", tooltip=" ", weight=STRAIGHT)

    def _draw_link(self, index: int, link: Link) -> None:
        target = self.scene.view.items[link.target]
        is_inside = self.scene.view.items[link.source].template == target.template
        name = str(target.id) if is_inside else self._node(target.id)
        if self._is_copied(target):
            # Item ids are plain numbers, so this name is nobody else's.
            name = f"{link.target}.{index}"
            self._draw_item(self._of(target), name, target)
        self._draw_arrow(name, index, link)

    def _words(self, words: str, style: dict[str, str]) -> dict[str, str]:
        """The style of an arrow with what stands beside it."""
        if words and self.labelled:
            # Graphviz measures from the middle of an arrow, however thick it is.
            room = block(10, 1 + round(float(style.get("penwidth", "1")) / 2))
            style["label"] = box([[room, *text(f" {words} ", style.get("fontcolor", INK), 10)]])
        # Without any, Graphviz would show its own: the ids of both ends.
        return {**style, "tooltip": _plain(words) or " "}

    def _draw_arrow(self, name: str, index: int, link: Link) -> None:
        style = self._words(*self.labels.flow(link))
        if index in self.straight:
            style["weight"] = STRAIGHT
        source = self.scene.view.items[link.source]
        has_outlet = self._has_outlets(source) and index in self.ends[source.id]
        outlet = f":{self.ends[source.id].index(index)}" if has_outlet else ""
        start = f"{source.id}{outlet}"
        if self._leaves(index):
            self._of(source).edge(start, self._exit(link), **self._onwards(link, style))
            start = self._node(source.id)
        if link.target in self.up:
            # Graphviz puts the start of an arrow above its end.
            start, name = name, start
            style = {**style, "dir": "back"}
        graph = self.way if self._leaves(index) else self._of(source)
        graph.edge(start, name, **style)


def _plain(words: str) -> str:
    """Text of an attribute: Graphviz reads neither markup nor escapes in it."""
    shown: str = graphviz.escape(shorten(visible(words), LONGEST_TOOLTIP, "…"))
    return shown
