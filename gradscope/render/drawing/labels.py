"""The HTML-like labels of boxes and arrows in a picture: words, sizes and colours of its design.

How wide they are is known to :mod:`gradscope.render.drawing.boxes`, which also makes them
harmless.  Knows nothing of layout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from gradscope.escaping import visible
from gradscope.model.observations import Finding
from gradscope.model.plain import TensorInfo
from gradscope.model.report import GradientInfo
from gradscope.render.drawing import boxes
from gradscope.render.drawing.boxes import INK, Line, Piece, block, box, outlets, text
from gradscope.render.drawing.facts import (
    cancelled,
    edges_in_words,
    hooked,
    mark_of,
    marked,
    meeting,
    opposing,
    residual_of_each,
    residuals,
    saved_words,
)
from gradscope.render.drawing.river import profile, told
from gradscope.render.drawing.scale import (
    STEPS,
    Round,
    exceptions,
    extremes,
    heights,
    sizes,
    tint,
)
from gradscope.render.drawing.scale import short as path_end
from gradscope.render.drawing.scene import Scene, state_word
from gradscope.render.drawing.verdict import Marks, sentences
from gradscope.render.options import Mark
from gradscope.render.words import numbers
from gradscope.render.words.text import BADGES, is_of_library, shorten
from gradscope.simplify.gradients import middle
from gradscope.simplify.partition import label_of
from gradscope.simplify.view import Item, Link
from gradscope.words import one_line

TEAL, GREY, FAINT = "#0b5370", "#4b5563", "#5b6472"
MAGENTA, LEAF_GREEN, BORDER = "#c2185b", "#2f7d4f", "#4a5565"

BADGE_INKS = {"error": MAGENTA, "warning": "#b45309", "information": TEAL}

LONGEST = 44
"""Characters of an expression or name in a box; the tooltip has all of it."""

LONGEST_TITLE = 80
"""Of a caption, which must not make the picture wider than its graph."""

MOST_FINDINGS = 5

MOST_NOTES = 12

_STRETCHES = 5
"""Colours along an arrow that stands for many rounds, at most."""

ARROW_STRENGTH = 0.8
"""How much of a step's colour an arrow has, beside boxes that are paler."""

_EDGE = 4
"""Points between the border of a box and its words, where its arrows have outlets."""

_BAR = 64
"""Width of a module's bar in points."""

_STRIP = 20
"""Height of a strip of bars in points."""

_APART = 16
"""Height of what keeps the head of a picture apart from what is below."""

_SHARES = 12
"""Height of a strip of shares."""

SKIP, BRANCH = "#3b7a94", "#cfdfe6"
"""What came through a skip, and what through what was added to it."""

_MOST_BARS = 40

_STRIP_ROOM = 156
"""Points that a strip takes, where its bars are few enough to be broad."""

_NARROW, _BROAD = 6, 12
"""Points of a bar and the gap after it."""


def short(words: str, keep_end: bool = False) -> str:
    """Foreign text, not longer than a box can bear."""
    return shorten(visible(words), LONGEST, "…", keep_end)


def _sizes(infos: list[GradientInfo]) -> str:
    return sizes(infos, "✖", "‖g‖ ")


class Labels:
    """The labels of one scene, and how its arrows look."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.marks = Marks(scene)

    def gradient(self, info: GradientInfo, tensor: TensorInfo | None) -> str:
        """A gradient in a word: its numbers, its norm, or its state; plain text."""
        return self.scene.told(info, tensor, "∅", "✖") or self.norm(info)

    def norm(self, info: GradientInfo) -> str:
        """``‖g‖ 1.5``, or "" where there is no number."""
        return "" if info.norm is None else f"‖g‖ {numbers.number(info.norm)}"

    def operation(self, item: Item, info: GradientInfo | None, root: str, ends: int) -> str:
        """A backward node: what it is, what the user wrote, where, and the size of its gradient;
        with an outlet for each of its ``ends``, where they are several."""
        scene = self.scene
        head = self._badge(item) + text(short(scene.title(item)), bold=True)
        expression = scene.expression(item)
        words = root if root and not expression else expression
        if words:
            head += text("  ") + text(short(words), TEAL)
        head += self._times(item)
        node = scene.graph.nodes[item.members[0]]
        tensor = scene.tensor(node.id, 0)
        head += self._value(tensor)
        facts = [numbers.shape(tensor.shape) if tensor else "", scene.source(item)]
        rounds = self.by_rounds(item)
        facts.append(_sizes(rounds) if rounds else self._size(info))
        saved = ", ".join(name for name, _ in node.saved) if scene.options.saved else ""
        # Kept out of the first line, which is all that is read at a distance.
        met = self._meeting(item)
        kept = text(saved_words(scene, item), INK, 10)
        where = text(" · ".join(filter(None, facts)), GREY, 10)
        lines = [head, where, *self._sides(item), self._hooked(item), kept, *met]
        lines += self._bars(rounds)
        lines.append(text(short(f"saved: {saved}") if saved else "", GREY, 10))
        lines.append(text(short(scene.cut(item.members)), GREY, 10))
        if ends > 1:
            room = max(sum(piece.width for piece in line) for line in lines)
            edges = [block(_EDGE, 1)], outlets(ends, room, _EDGE)
            is_up = scene.view.sides is not None and item.id in scene.view.sides.up
            above, below = edges[::-1] if is_up else edges
            lines = [above, *lines, below]
        return box(lines)

    def leaf(self, item: Item, info: GradientInfo | None, uses: int) -> str:
        """A leaf tensor: its name, its shape, and what arrived in total."""
        tensor = self.scene.tensor(item.members[0], 0)
        facts = (self.scene.type(item), "leaf", numbers.shape(tensor.shape) if tensor else "")
        words = " ".join(filter(None, facts))
        if uses > 1:
            words += f" · used ×{uses:,}"
        title = text(short(self.scene.title(item), keep_end=True), bold=True) + self._times(item)
        head = self._badge(item) + title + text(f"  {words}", GREY, 10)
        head += self._value(tensor)
        rounds = self.by_rounds(item)
        if rounds:
            return box([head, text(f"grad {_sizes(rounds)}", INK, 10), *self._bars(rounds)])
        if info is None:
            return box([head, *self._sides(item)])
        total = self.gradient(info, tensor)
        said = (
            total
            if info.state in ("none", "not reached")
            else f"grad {total}" + " in all" * (uses > 1)
        )
        color = MAGENTA if info.state == "non-finite" else INK
        apart = self.scene.spread(item)
        lines = [head, text(said, color, 10), self._hooked(item), *self._meeting(item)]
        return box([*lines, text(apart, GREY, 10)])

    def _sides(self, item: Item) -> list[Line]:
        """What arrives on each side of a comparison, of what is drawn once for all rounds in that
        in which the two are furthest apart; and what differs in the box itself."""
        mark = mark_of(self.scene, item)
        told = [text(mark.more if mark else "", TEAL, 10)]
        return [self._arrivals(item), *told] if self.scene.options.sides else told

    def _arrivals(self, item: Item) -> Line:
        scene = self.scene
        if not scene.each:
            return []
        each = [
            [one.entering(item)] if item.template is None else one.rounds(item)
            for one in scene.each
        ]
        rounds = [*zip(*each, strict=True)]
        nodes = [one.nodes for one in item.rounds] if item.template is not None else [item.members]
        marks = scene.options.overlay.nodes if scene.options.overlay else {}

        def apart(place: int) -> float:
            # Of what several edges lead to none of them says how far the sums are apart.
            if item.kind != "leaf":
                norms = [float(one.norm or 0) for one in rounds[place]]
                return (max(norms) - min(norms)) / (max(norms) or 1.0)
            return max((marks[node].weight for node in nodes[place] if node in marks), default=0.0)

        furthest = max(range(len(rounds)), key=apart)
        told = []
        for side, info in zip("AB", rounds[furthest], strict=False):
            if info.state == "non-finite":
                told.append(f"{side} ✖ not finite")
            elif info.norm is not None:
                told.append(f"{side} {numbers.number(info.norm)}")
        where = f" in {path_end(visible(item.rounds[furthest].name))}" if len(rounds) > 1 else ""
        return text(f"‖g‖ {' · '.join(told)}{where}" if told else "", INK, 10)

    def _value(self, tensor: TensorInfo | None) -> Line:
        """The value of a forward tensor, in the picture of an explanation."""
        value = self.scene.explained_value(tensor)
        return text(f"  = {value}" if value else "")

    def _hooked(self, item: Item) -> Line:
        """What a hook of the program made of the gradient that arrived."""
        gradients = self.scene.gradients
        hook = gradients.backward.hook_on(item.members[0]) if gradients else None
        return text("" if hook is None else short(hooked(hook)), MAGENTA, 10)

    def group(self, item: Item, info: GradientInfo | None) -> str:
        """A closed group: its name and class, what is inside, a bar for the gradient entering it,
        and where it repeats one for every round."""
        scene = self.scene
        head = self._badge(item) + text(short(scene.title(item), keep_end=True), bold=True)
        if scene.type(item):
            head += text(f"  {short(scene.type(item))}", GREY, 10)
        # What was never called is said in front of the name.
        words = scene.expression(item).removesuffix(scene.never_called(item))
        inside = text(short(words), TEAL, 10) + self._times(item)
        facts = [scene.operations_of_rounds(item), scene.source(item), scene.parameters(item)]
        rounds = self.by_rounds(item)
        sizes = [_sizes(rounds)] if rounds else []
        if item.kind == "module" and item.label:
            # Below the words of its call, which are long.
            facts, sizes = [], [scene.operations(item), *facts, *sizes]
        inside += [cell for fact in facts if fact for cell in text(f" · {fact}", FAINT, 10)]
        lines = [head, inside, text(" · ".join(filter(None, sizes)), GREY, 10), *self._sides(item)]
        lines.append(text(saved_words(scene, item), INK, 10))
        if rounds:
            return box([*lines, *self._meeting(item), *self._bars(rounds)])
        rounds_of = scene.rounds(item)
        # Of rounds that get theirs side by side the whole says less than the strip.
        if info and len(rounds_of) < 2:
            lines.append(self._bar(info))
        lines += [] if len(rounds_of) > 1 else self._meeting(item)
        lines.append(text(short(scene.cut(item.members)), GREY, 10))
        return box([*lines, *self._strip(rounds_of)])

    def frame(self, template: Item) -> str:
        """The head of a repeat that is drawn once: its name, how often, and a bar for every
        round."""
        head = text(short(template.title, keep_end=True), bold=True)
        if template.type != template.title:
            head += text(f"  {short(template.type)}", GREY, 10)
        head += text(f"  ×{template.count:,}", TEAL, 12, bold=True)
        head += text(self.scene.never_called(template), INK, 10)
        if severity := self.marks.badge(template):
            spot = self.marks.of_frame(template) or self.marks.in_frame(template)
            words = spot.words if spot else self._badge_words(template)
            words = f"  {BADGES[severity]} {words}"
            head += text(words, "white", bold=True, ground=BADGE_INKS[severity])
        return box([head, *self._strip(self.scene.rounds(template))], left=True)

    def inside(self, template: Item) -> str:
        """The head of what is in each round of a repeat that is drawn once."""
        title = short(template.title, keep_end=True)
        return box([[*text(title, bold=True), *text(f"  each of {template.count:,}", TEAL)]])

    def _meeting(self, item: Item) -> list[Line]:
        """Words on gradients that meet in an item, and bars: how much came through the skip, how
        much through the branch; below it what is left of both, and hollow what cancelled."""
        skips, opposed = residuals(self.scene, item), opposing(self.scene, item)
        told = meeting(self.scene, item)
        told = "" if told == self._badge_words(item) else told
        lines = [text(told, TEAL if opposed else GREY, 10)] if told else []
        if item.template is not None:
            each = residual_of_each(self.scene, item) if skips else []
            few = each[:: math.ceil(len(each) / _MOST_BARS) or 1]
            width = min(max(_STRIP_ROOM // max(len(few), 1), _NARROW), _BROAD)
            return [*lines, [self._share(share, width) for share in few]]
        for share in skips:
            skip = round(share * _BAR)
            lines.append([block(7, skip, SKIP), block(7, _BAR - skip, BRANCH)])
        for share in () if item.folded else sorted(opposed)[-1:]:
            left = max(round((1 - share) * _BAR), 1)
            lines.append([block(7, left, TEAL), block(7, _BAR - left, border=TEAL)])
        return lines

    def _share(self, share: float | None, width: int) -> Piece:
        """The share of one round; a gap for one that is no such sum, so that each bar stands above
        that of its gradient."""
        if share is None:
            return block(_SHARES, width - 1)
        (piece,) = boxes.bars([(round(share * _SHARES), SKIP)], _SHARES, width, BRANCH)
        return piece

    def _times(self, item: Item) -> Line:
        times = self.scene.rounds_beside(item)
        return text(f" {times}", TEAL, 10) if times else []

    def by_rounds(self, item: Item) -> list[GradientInfo]:
        """What enters an item of a template in each round."""
        if item.template is None:
            return []
        return [one.info for one in self.scene.rounds(item)]

    def _bars(self, infos: list[GradientInfo]) -> list[Line]:
        shown = [self._upright(*one) for one in heights(infos, _MOST_BARS)] if infos else []
        if len(set(shown)) < 2:
            return []  # they say no more than the words do
        width = min(max(_STRIP_ROOM // len(shown), _NARROW), _BROAD)
        return [boxes.bars(shown, _STRIP + 4, width)]

    def _upright(self, info: GradientInfo, place: float | None) -> tuple[int, str]:
        """How high the bar of a round is, and its colour."""
        if info.state == "non-finite":
            return 2 + _STRIP, MAGENTA
        step = self.scene.scale.step(info.norm)
        height = 2 if place is None else 2 + round(place * _STRIP)
        return height, GREY if step is None else STEPS[step]

    def _strip(self, rounds: list[Round]) -> list[Line]:
        """A bar for every round, or for several where they are many, and words about them."""
        if len(rounds) < 2:
            return []
        named = [one._replace(name=path_end(one.name)) for one in rounds]
        words = (exceptions(named), extremes(named))
        bars = self._bars([one.info for one in rounds])
        return [*bars, *(text(line, GREY, 10) for line in words)]

    def _badge(self, item: Item) -> Line:
        """The sign and the rule of the worst finding about an item, or what it does."""
        severity = self.marks.badge(item)
        if severity is None:
            return []
        words = f"{BADGES[severity]} {self._badge_words(item)}".strip() + "  "
        return text(words, "white", bold=True, ground=BADGE_INKS[severity])

    def _badge_words(self, item: Item) -> str:
        severity, spot = self.marks.badge(item), self.marks.of(item)
        found = (short(one.rule) + self._round_of(item, one) for one in self.scene.about(item))
        words = spot.words if spot else next(found, "")
        if severity == "information" and not words and item.kind == "repeat":
            words = self.scene.never_called(item).removeprefix(" · ")
        if severity is not None and not words and item.kind == "leaves":
            words = cancelled(self.scene, item)
        return words

    def _round_of(self, item: Item, finding: Finding) -> str:
        """`` in h.0``, the one of several rounds that a finding is about, or ""."""
        name = self.scene.round_name(item, finding.node.id) if finding.node else ""
        return f" in {short(name)}" if name else ""

    def _size(self, info: GradientInfo | None) -> str:
        if info is None:
            return ""
        return state_word(info, "∅", "✖") or self.norm(info)

    def _bar(self, info: GradientInfo) -> Line:
        place = self.scene.scale.fraction(info.norm)
        step = self.scene.scale.step(info.norm)
        color = MAGENTA if info.state == "non-finite" else GREY
        value = text(self._size(info) or "?", color, 10)
        if place is None or step is None:
            return value
        # Two colours with a share each fill a cell side by side.
        share = max(round(place, 2), 0.04)
        color = f"{STEPS[step]};{share}:#e8eaed" if share < 1 else STEPS[step]
        return [block(7, _BAR, color), block(7, 6), *value]

    def caption(self, river: bool) -> str:
        """What stands above the picture: what it is of, what is wrong, and what colours mean;
        with ``river`` a bar for each part of the whole graph."""
        overlay = self.scene.options.overlay
        key = overlay.key if overlay else ()
        lines = [*self._heading(), *self._verdict()]
        lines += self.legend()
        lines += [self._key(some) for some in (key[:2], key[2:])]
        # Above a root nothing else keeps its box away from this.
        is_bare = self.scene.gradients is None or self.scene.options.sides
        apart = [[block(1, _APART)]] if is_bare else []
        return box([*lines, *self._profile(river), *apart], left=True)

    def _heading(self) -> list[Line]:
        """What the picture is of: the root, or what was run; where; how large it is."""
        scene = self.scene
        first = scene.graph.roots[0].node if scene.graph.roots else None
        label = "" if first is None else label_of(scene.graph, scene.graph.nodes[first])
        target = visible(scene.report.meta.target)
        title = visible(one_line(label)) or target
        # As its box says it: of a gradient's gradient that is where it was asked for.
        origin = scene.view.items[scene.view.roots[0]].origin if scene.view.roots else None
        place = scene.place(origin)
        if origin is not None and is_of_library(scene.graph.origins[origin].file):
            # The user's own line first, or what was run.
            call = None if scene.backward is None else scene.backward.origin
            own = "" if call is None else visible(scene.graph.origins[call].expression)
            title = own or target or title
            called = "" if call is None else scene.place(call)
            place = " · from ".join(filter(None, (called, place)))
        overlay = scene.options.overlay
        way = overlay.caption if overlay else scene.direction()
        # The name of the file that was run is often in the place, and a function of it is not.
        file = target.rpartition("/")[2]
        is_told = file in place if file.endswith((".py", ".ipynb")) else "::" not in file
        run = "" if is_told or target == title else shorten(target, LONGEST_TITLE, "…")
        if overlay is not None and overlay.is_ratio:
            run, title = title, target
        facts = [run, place, scene.rank(), scene.size(), way]
        return [
            text(shorten(title, LONGEST_TITLE, "…"), size=14, bold=True),
            text(" · ".join(fact for fact in facts if fact), FAINT, 11),
            text(scene.folded(is_for_others=True), FAINT, 11),
        ]

    def _verdict(self) -> list[Line]:
        """The verdict, the worst findings, and notes on the report."""
        scene = self.scene
        lines = [
            text(told, BADGE_INKS[severity] if severity else INK)
            for told, severity in sentences(scene)
        ]
        for severity, line in scene.findings()[:MOST_FINDINGS]:
            words = f"{BADGES[severity]} {shorten(line, LONGEST_TITLE, '…')}"
            lines.append(text(words, BADGE_INKS[severity]))
        notes = scene.report.notes
        lines += [text(note, FAINT, 10) for note in notes[:MOST_NOTES]]
        if len(notes) > MOST_NOTES:
            lines.append(text(f"… {len(notes) - MOST_NOTES:,} more notes", FAINT, 10))
        return lines

    def _key(self, marks: Sequence[Mark]) -> Line:
        """What some marks mean, each after its colour."""
        row: Line = []
        for mark in marks:
            row += [block(8, 9, mark.color)] if mark.color else []
            row += text(f" {mark.words}    ", FAINT, 10)
        return row

    def _profile(self, is_drawn: bool) -> list[Line]:
        """The gradients of the whole graph in words, and with ``is_drawn`` as bars."""
        rows = profile(self.scene)
        if not rows:
            return []
        if is_drawn:
            words = told(self.scene, rows, is_far=True)
            head = text(f"median ‖g‖ from the loss on  {words}", FAINT, 10)
            return [head, *self._bars([row.info for row in rows])]
        # What a strip beside the picture shows needs no words.
        words = told(self.scene, rows)
        return [text(f"‖g‖ {words}" if words else "", FAINT, 10)]

    def legend(self) -> list[Line]:
        """The steps of the scale between the numbers they stand for; nothing where all gradients
        are on one of them."""
        scale, backward = self.scene.scale, self.scene.backward
        steps = {scale.step(info.norm) for info in backward.gradients} if backward else set()
        if len(steps - {None}) < 2:
            return []
        low, high = map(numbers.number, scale.ends)
        low = f"≤ {low}" if scale.is_passed_below else low
        high = f"≥ {high}" if scale.is_passed_above else high
        swatches = [block(8, 9, color) for color in STEPS]
        below = f" · {scale.far_below}" if scale.far_below else ""
        first, last = f"‖g‖, log scale  {low} ", f" {high}{below}"
        return [[*text(first, FAINT, 10), *swatches, *text(last, FAINT, 10)]]

    # ------------------------------------------------------------------ arrows

    def flow(self, link: Link) -> tuple[str, dict[str, str]]:
        """What stands beside an arrow, and how the arrow looks."""
        scene = self.scene
        source, target = (scene.view.items[end] for end in (link.source, link.target))
        once = source.template is not None and source.template == target.template
        # In a template one edge of a round stands for those of all.
        tensor = scene.tensor_of(
            link if not once else msgspec.structs.replace(link, edges=link.edges[:1])
        )
        of = edges_in_words(scene, link)
        bundled = f" · {of}" if of else ""
        overlay = scene.options.overlay
        mark = marked(overlay.edges if overlay else {}, link.edges)
        if mark is not None:
            return mark.words + bundled, {
                "color": mark.color,
                "fontcolor": mark.color,
                "penwidth": "2",
            }
        if scene.gradients is None:
            # Between two sides that agree there is nothing to say.
            words = numbers.shape(tensor.shape) if tensor and not scene.options.sides else ""
            return words + bundled, {}
        if once:
            return self._flow_by_rounds(link, bundled)
        info = scene.gradients.link(link)
        factor = scene.factors.get(link.edges[0], "") if len(link.edges) == 1 else ""
        most = scene.gradients.largest_of(link)
        words = f"× {factor} = " if factor else ""
        words += self.norm(most) if most else self.gradient(info, tensor)
        words += bundled + scene.of_round(link)
        if words == self.norm(info) and self._is_told_by_box(target, [info]):
            words = ""
        words = " · ".join(filter(None, (scene.turns(link) if words else "", words)))
        if info.state == "non-finite":
            return words, {"color": MAGENTA, "fontcolor": MAGENTA, "penwidth": "2.5"}
        return words, {"style": "dashed"} if info.state != "finite" else self._pen(info)

    def _is_told_by_box(self, item: Item, infos: list[GradientInfo]) -> bool:
        """Whether the box of an item tells what its only arrow brings, in each round."""
        scene = self.scene
        if len(scene.incoming[item.id]) > 1 or item.id in scene.view.roots or not scene.gradients:
            return False
        told = self.by_rounds(item) or [scene.gradients.entering(item)]
        return [one.norm for one in told] == [one.norm for one in infos]

    def _flow_by_rounds(self, link: Link, bundled: str) -> tuple[str, dict[str, str]]:
        """The same for an arrow that stands for one in every round."""
        gradients = self.scene.gradients
        infos = gradients.link_by_rounds(link) if gradients else []
        words, target = _sizes(infos) + bundled, self.scene.view.items[link.target]
        if not bundled and self._is_told_by_box(target, infos):
            words = ""
        words = " · ".join(filter(None, (self.scene.turns(link) if words else "", words)))
        if any(info.state == "non-finite" for info in infos):
            return words, {"color": MAGENTA, "fontcolor": MAGENTA, "penwidth": "2.5"}
        pen = self._pen(middle(infos))
        if not pen:
            return words, {"style": "dashed"}
        return words, {**pen, "color": self._along(infos) or pen["color"]}

    def _along(self, infos: Sequence[GradientInfo]) -> str:
        """The colours of some rounds one after the other along an arrow, in the order of backward;
        "" where they are all alike."""
        many = min(len(infos), _STRETCHES)
        some = [infos[place * (len(infos) - 1) // max(many - 1, 1)] for place in range(many)]
        steps = [step for info in some if (step := self.scene.scale.step(info.norm)) is not None]
        if len({*steps}) < 2:
            return ""
        *first, last = [tint(step, ARROW_STRENGTH) for step in steps]
        return ":".join([*(f"{color};{1 / len(steps):.3f}" for color in first), last])

    def _pen(self, info: GradientInfo) -> dict[str, str]:
        """How thick an arrow is, and its colour; nothing for what has no place on the scale."""
        place, step = self.scene.scale.fraction(info.norm), self.scene.scale.step(info.norm)
        if place is None or step is None:
            return {}
        return {"penwidth": f"{1 + 5 * place:.2f}", "color": tint(step, ARROW_STRENGTH)}
