"""The HTML-like labels of boxes and arrows in a picture: words, sizes and colours of its design.

Every foreign text goes through :func:`gradscope.render.words.text.markup`.  Knows nothing of
layout.
"""

from __future__ import annotations

from gradscope.escaping import visible
from gradscope.model.plain import TensorInfo
from gradscope.model.report import GradientInfo
from gradscope.render.drawing.scale import INKS, STEPS, tint
from gradscope.render.drawing.scene import Scene, state_word
from gradscope.render.drawing.strip import Round, exceptions, extremes, heights
from gradscope.render.drawing.strip import short as path_end
from gradscope.render.words import numbers
from gradscope.render.words.findings import BADGES
from gradscope.render.words.text import markup, shorten, wrapped
from gradscope.simplify import Item

INK, TEAL, GREY, FAINT = "#16181d", "#0b5370", "#4b5563", "#5b6472"
MAGENTA, LEAF_GREEN, BORDER = "#c2185b", "#2f7d4f", "#4a5565"

SIGNS = {**BADGES, "information": "i"}
"""Fewer fonts of pictures have the terminal's sign for information."""

BADGE_INKS = {"error": MAGENTA, "warning": "#b45309", "information": TEAL}

LONGEST = 44
"""Characters of an expression or name in a box; the tooltip has all of it."""

LONGEST_TEXT = 400
"""Cells of any other text; Graphviz refuses a file with very long ones."""

_BAR = 64
"""Width of a module's bar in points."""

_STRIP = 20
"""Height of a strip of bars in points."""

_MOST_BARS = 40


_TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{}</TABLE>'


def text(words: str, color: str = INK, size: int = 12, bold: bool = False) -> str:
    """Foreign text in one style."""
    if not words:
        return ""  # Graphviz refuses a font that is around nothing
    body = markup(shorten(words, LONGEST_TEXT, "…"))
    body = f"<B>{body}</B>" if bold else body
    return f'<FONT COLOR="{color}" POINT-SIZE="{size}">{body}</FONT>'


def box(lines: list[str]) -> str:
    """Lines under each other, as an HTML-like label."""
    rows = "".join(f'<TR><TD CELLPADDING="1">{line}</TD></TR>' for line in lines if line)
    return f"<{_TABLE.format(rows)}>"


def short(words: str, keep_end: bool = False) -> str:
    """Foreign text, not longer than a box can bear."""
    return shorten(visible(words), LONGEST, "…", keep_end)


class Labels:
    """The labels of one scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def gradient(self, info: GradientInfo, tensor: TensorInfo | None) -> str:
        """A gradient in a word: its numbers, its norm, or its state; plain text."""
        word = state_word(info, "∅", "⚠")
        values = self.scene.values(info, tensor.shape if tensor else None)
        if info.state == "non-finite" and values:
            return f"⚠ {values}"
        if word:
            return word
        return values or self.norm(info)

    def norm(self, info: GradientInfo) -> str:
        """``‖g‖ 1.5``, or "" where there is no number."""
        return "" if info.norm is None else f"‖g‖ {numbers.number(info.norm)}"

    def operation(self, item: Item, info: GradientInfo | None, root: str) -> str:
        """A backward node: what it is, what the user wrote, where, and the size of its gradient."""
        scene = self.scene
        head = self._badge(item) + text(short(scene.title(item)), bold=True)
        expression = scene.expression(item)
        words = root if root and not expression else expression
        if words:
            head += text("  ") + text(short(words), TEAL)
        node = scene.graph.nodes[item.members[0]]
        tensor = scene.tensor(node.id, 0)
        facts = [numbers.shape(tensor.shape) if tensor else "", scene.source(item)]
        facts.append(self._size(info))
        saved = ", ".join(name for name, _ in node.saved) if scene.options.saved else ""
        # Kept out of the first line, which is all that is read at a distance.
        got = wrapped(visible(node.raised), LONGEST)
        lines = [head, _faint(facts, GREY), *(text(line, MAGENTA, 10) for line in got)]
        return box([*lines, text(short(f"saved: {saved}"), GREY, 10)] if saved else lines)

    def leaf(self, item: Item, info: GradientInfo | None, uses: int) -> str:
        """A leaf tensor: its name, its shape, and what arrived in total."""
        tensor = self.scene.tensor(item.members[0], 0)
        facts = (self.scene.type(item), "leaf", numbers.shape(tensor.shape) if tensor else "")
        words = " ".join(filter(None, facts))
        if uses > 1:
            words += f" · used ×{uses:,}"
        title = text(short(item.title, keep_end=True), bold=True)
        head = self._badge(item) + title + text(f"  {words}", GREY, 10)
        if info is None:
            return box([head])
        total = self.gradient(info, tensor)
        said = total if info.state in ("none", "not reached") else f"grad {total}"
        color = MAGENTA if info.state == "non-finite" else INK
        apart = self.scene.spread(item)
        return box([head, text(said, color, 10), text(apart, GREY, 10)])

    def group(self, item: Item, info: GradientInfo | None) -> str:
        """A closed group: its name and class, what is inside, a bar for the gradient entering it,
        and where it repeats one for every round."""
        scene = self.scene
        head = self._badge(item) + text(short(scene.title(item), keep_end=True), bold=True)
        if scene.type(item):
            head += text(f"  {short(scene.type(item))}", GREY, 10)
        inside = text(short(scene.expression(item)), TEAL, 10)
        facts = (scene.operations_of_rounds(item), scene.source(item), scene.parameters(item))
        inside += "".join(text(f" · {fact}", FAINT, 10) for fact in facts if fact)
        lines = [head, inside]
        if info:
            lines.append(self._bar(info))
        return box([*lines, *self._strip(scene.rounds(item))])

    def _strip(self, rounds: list[Round]) -> list[str]:
        """A bar for every round, or for several where they are many, and words about them."""
        if len(rounds) < 2:
            return []
        shown = heights([one.info for one in rounds], _MOST_BARS)
        bars = "".join(self._upright(info, place) for info, place in shown)
        named = [one._replace(name=path_end(one.name)) for one in rounds]
        words = (exceptions(named), extremes(named))
        return [_TABLE.format(f"<TR>{bars}</TR>"), *(text(line, GREY, 10) for line in words)]

    def _upright(self, info: GradientInfo, place: float | None) -> str:
        step = self.scene.scale.step(info.norm)
        color = GREY if step is None else INKS[step]
        height = 2 if place is None else 2 + round(place * _STRIP)
        if info.state == "non-finite":
            color, height = MAGENTA, 2 + _STRIP
        # A blank above each bar: Graphviz would put the bar in the middle.
        rows = ((4 + _STRIP - height, ""), (height, f' BGCOLOR="{color}"'))
        bar = "".join(
            f'<TR><TD FIXEDSIZE="TRUE" WIDTH="5" HEIGHT="{size}"{fill}></TD></TR>'
            for size, fill in rows
        )
        return f'<TD FIXEDSIZE="TRUE" WIDTH="6" HEIGHT="{_STRIP + 4}">{_TABLE.format(bar)}</TD>'

    def _badge(self, item: Item) -> str:
        """The sign and the rule of the worst finding about an item."""
        for finding in self.scene.about(item):
            words = f"{SIGNS[finding.severity]} {short(finding.rule)}  "
            return text(words, BADGE_INKS[finding.severity], bold=True)
        return ""

    def _size(self, info: GradientInfo | None) -> str:
        if info is None:
            return ""
        return state_word(info, "∅", "⚠") or self.norm(info)

    def _bar(self, info: GradientInfo) -> str:
        place = self.scene.scale.fraction(info.norm)
        step = self.scene.scale.step(info.norm)
        color = MAGENTA if info.state == "non-finite" else GREY
        value = text(self._size(info) or "?", color, 10)
        if place is None or step is None:
            return value
        # Two colours with a share each fill a cell side by side.
        share = max(round(place, 2), 0.04)
        color = f"{INKS[step]};{share}:#e8eaed" if share < 1 else INKS[step]
        bar = f'<TD FIXEDSIZE="TRUE" HEIGHT="7" WIDTH="{_BAR}" BGCOLOR="{color}"></TD>'
        return _TABLE.format(f'<TR>{bar}<TD CELLPADDING="3">{value}</TD></TR>')

    def legend(self) -> str:
        """The steps of the scale between the numbers they stand for."""
        scale = self.scene.scale
        # Widened, the scale may end beyond the largest number.
        ends = (10 ** min(end, 308) for end in (scale.low, scale.high))
        low, high = (numbers.number(float(f"{end:.1g}")) for end in ends)
        swatches = "".join(text("■", tint(step, 0.8), 11) for step in range(len(STEPS)))
        return text(f"‖g‖ {low} ", FAINT, 10) + swatches + text(f" {high}", FAINT, 10)


def _faint(facts: list[str], color: str) -> str:
    words = " · ".join(fact for fact in facts if fact)
    return text(words, color, 10) if words else ""
