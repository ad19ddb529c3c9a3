"""The one scale of sizes in a drawing: logarithmic, over the norms of this report; and the norms of
things that repeat, as a strip of blocks, one a round, with the largest and smallest in words.

Colour says smaller, typical, larger within one report; it is never a verdict. Must not know where
it stands, or how rounds were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

from gradscope.escaping import visible
from gradscope.model.plain import Number
from gradscope.model.report import GradientInfo
from gradscope.render.words import numbers
from gradscope.render.words.table import Part
from gradscope.render.words.text import Glyphs
from gradscope.words import count

if TYPE_CHECKING:
    from gradscope.model.observations import Severity

STEPS = (
    "#3b5cb9",
    "#317ac2",
    "#589ac8",
    "#7792a7",
    "#8f9193",
    "#a7886f",
    "#b57c4a",
    "#bf6519",
    "#ab3e00",
)
"""From small over typical to large, in pictures, on the page and on the terminal: visible on dark
and light ground.  Neighbours differ by more than 10 (CIE76) also to people who lack one kind of
cones; bars and numbers say the same."""

BAD_INK = "bold #d0327a"
"""Of what is not finite, on the terminal."""

_NARROWEST = 4.0
"""Decades the scale spans at least, as in ``web/src/scale.js``: norms of 1 and 2 shall not look
like opposites."""

_GAP = 3.0
"""Decades without any norm, below which lies what is zero but for rounding: the gradients of biases
before a batch norm, say.  What vanishes on its way leaves no such gap."""


class Scale:
    """Where a norm lies between the small and the large ones of this report."""

    def __init__(
        self,
        gradients: Iterable[GradientInfo],
        given: Iterable[GradientInfo] = (),
        narrowest: float = _NARROWEST,
    ) -> None:
        """``given``: what backward started with, and what leaves got in all, which are shown, but
        are no measure; ``narrowest``: the decades that the scale spans at least."""
        logs = _logarithms(gradients)
        first = first_of_bulk(logs)
        self.far_below = f"{count(first, 'gradient')} far below all others" if first else ""
        """How many norms are too far below all others to have a place, or ""."""
        logs = logs[first:]
        # A single outlier must not push everything else onto one step.
        low = logs[len(logs) // 32] if logs else 0.0
        high = logs[-1 - len(logs) // 100] if logs else 0.0
        # Widened on both sides, so that equal norms lie in the middle, which means typical.
        missing = max(narrowest - (high - low), 0.0) / 2
        self.low = low - missing
        self.high = high + missing
        largest = max([*logs, *_logarithms(given)], default=-math.inf)
        self.is_passed_above = largest > math.log10(self.ends[1])
        """Whether there are larger norms than the scale has, as that is told."""
        self.is_passed_below = bool(logs) and float(f"{10 ** logs[0]:.1g}") < self.ends[0]

    @property
    def ends(self) -> tuple[float, float]:
        """The norms at both ends, as they are told: of one digit."""
        low, high = (float(f"{10 ** min(end, 308):.1g}") for end in (self.low, self.high))
        return low, high

    def fraction(self, norm: Number | None) -> float | None:
        """0 for the smallest, 1 for the largest, None for what has no place on the scale."""
        if norm is None:
            return None
        size = float(norm)
        if not 0 < size < math.inf:
            return None
        place = (math.log10(size) - self.low) / (self.high - self.low)
        return min(max(place, 0.0), 1.0)

    def step(self, norm: Number | None) -> int | None:
        """The index into :data:`STEPS`, or None for what has no place on the scale."""
        place = self.fraction(norm)
        return None if place is None else round(place * (len(STEPS) - 1))

    def ink(self, info: GradientInfo) -> str:
        """The colour of a gradient on the terminal."""
        step = self.step(info.norm)
        return BAD_INK if info.state == "non-finite" else "dim" if step is None else STEPS[step]


def _logarithms(gradients: Iterable[GradientInfo]) -> list[float]:
    """Of the norms that have one, ascending."""
    known = (float(info.norm) for info in gradients if info.norm is not None)
    return sorted(math.log10(size) for size in known if 0 < size < math.inf)


def first_of_bulk(logs: list[float]) -> int:
    """The first of these, in their order, above the last wide gap in their lower third."""
    third = range(len(logs) // 3, 0, -1)
    return next((place for place in third if logs[place] - logs[place - 1] >= _GAP), 0)


def tint(step: int, strength: float = 0.26) -> str:
    """A step's colour mixed with white, light enough to put text on."""
    color = STEPS[step]
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - strength * (255 - part)):02x}" for part in parts)


def size_cell(info: GradientInfo, glyphs: Glyphs, style: str) -> Part:
    """The norm of a gradient, or the sign of its state; narrow enough to stay in any terminal."""
    if info.state in ("none", "not reached"):
        return Part(glyphs.silent, style)
    if info.norm is None:
        return Part("?", style)  # a meta tensor has no numbers
    sign = f"{glyphs.bad} " if info.state == "non-finite" else ""
    return Part(sign + numbers.number(info.norm), style)


NARROWEST = 1.0
"""Decades between the lowest and the highest block at least: a strip of norms that hardly differ is
nearly flat."""

FEWEST_CELLS = 12
"""A strip is not squeezed below this to make room for its words."""

MOST_CELLS = 60
"""Nor does it grow beyond this."""


GROWN = 10
"""A gradient that is so many times as large at the end of a repeat is told."""

FEWEST_GROWING = 3
"""Rounds of which that is said."""


class Round(NamedTuple):
    """One repetition: what it is called, and the gradient that enters it."""

    name: str
    info: GradientInfo


def strip(infos: Sequence[GradientInfo], most: int, glyphs: Glyphs) -> str:
    """A block for every round, higher for a larger norm, on a logarithmic scale of their own.

    Where there are more rounds than ``most`` cells, a cell stands for several and shows the
    largest; a gradient that is not finite is always shown.
    """
    return "".join(cell(info, place, glyphs) for info, place in heights(infos, most))


def heights(infos: Sequence[GradientInfo], most: int) -> list[tuple[GradientInfo, float | None]]:
    """What a strip of at most ``most`` cells shows, and how high: from 0 to 1, or None for what has
    no size to compare."""
    scale = Scale(infos, narrowest=NARROWEST)
    cells = min(len(infos), max(most, 1))
    ends = [len(infos) * cell // cells for cell in range(cells + 1)]
    shown = [_loudest(infos[start:end]) for start, end in pairwise(ends)]
    return [(info, scale.fraction(info.norm)) for info in shown]


def _loudest(infos: Sequence[GradientInfo]) -> GradientInfo:
    """What is not finite, else the largest."""
    return max(infos, key=lambda info: (info.state == "non-finite", float(info.norm or 0)))


def cell(info: GradientInfo, place: float | None, glyphs: Glyphs) -> str:
    """A block of so much of the height; a sign for what is not finite, zero or not there."""
    if info.state == "non-finite":
        return glyphs.bad
    if place is not None:
        return glyphs.levels[round(place * (len(glyphs.levels) - 1))]
    return "0" if info.state == "zero" else glyphs.silent


def extremes(rounds: Sequence[Round], most: int | None = None) -> str:
    """``largest 1.42 in h.0 · smallest 0.44 in h.11``, made visible; "" where no round has a norm.

    Says max and min where that would be longer than ``most`` characters.
    """
    known = [one for one in rounds if one.info.state == "finite" and one.info.norm is not None]
    if not known:
        return ""
    largest, smallest = max(known, key=_size), min(known, key=_size)
    if _size(largest) == _size(smallest):
        return f"each {numbers.number(_size(largest))}"
    words = f"largest {_told(largest)} · smallest {_told(smallest)}"
    if most is None or len(words) <= most:
        return words
    return f"max {_told(largest)} · min {_told(smallest)}"


VANISHED = 1e-5
"""A gradient by the largest one, below which next to nothing has arrived."""


class Course(NamedTuple):
    """What becomes of a gradient over rounds, made visible: a sentence, before and after the words
    that say where; in a few words; the round at which it is so, by its place; how bad it is;
    whether the sentence names rounds before it says where; and whether it is so of what leaves
    that round, and not of what enters it."""

    before: str
    after: str
    words: str
    place: int
    severity: Severity
    names_rounds: bool
    is_behind: bool = False


def vanished(rounds: Sequence[Round]) -> Course | None:
    """From which round on, in backward order, next to nothing of a gradient arrives; None where
    enough arrives at the last."""
    limit = VANISHED * max((_size(one) for one in rounds if _is_sized(one)), default=0.0)
    little = list(takewhile(lambda one: _is_sized(one) and _size(one) < limit, reversed(rounds)))
    # Of zeros alone it is said how many there are.
    if not any(map(_size, little)):
        return None
    first, last = visible(little[-1].name), visible(little[0].name)
    way = f"from {first} back to {last}" if len(little) > 1 else f"at {first}"
    after = f": under 1e-5 of its largest ‖g‖ {way}"
    if nothing := [*takewhile(lambda one: not _size(one), little)]:
        after += f", exactly 0 from {visible(nothing[-1].name)} back"
    words = f"vanishes from {first}"
    return Course(
        "the gradient vanishes", after, words, len(rounds) - len(little), "warning", False
    )


def grown(rounds: Sequence[Round], leaving: Callable[[], GradientInfo | None]) -> Course | None:
    """How many times as large, or as small, the gradient is that enters the last round, in backward
    order, or that is ``leaving`` it, where it goes on to grow or to fall there; None where what
    enters is under :data:`GROWN`, or where one between is beyond them."""
    if len(rounds) < FEWEST_GROWING or not all(map(_is_sized, rounds)):
        return None
    sizes = [*map(_size, rounds)]
    ends = sorted((sizes[0], sizes[-1]))
    if not 0 < GROWN * ends[0] <= ends[1] or [min(sizes), max(sizes)] != ends:
        return None
    grows = sizes[-1] > sizes[0]
    last = leaving()
    beyond = float(last.norm or 0) if last is not None and last.state == "finite" else 0.0
    if beyond and (beyond > sizes[-1]) == grows:
        sizes.append(beyond)
    steps = [b / a if grows else a / b for a, b in pairwise(sizes)]
    at, behind, ratio = 0, len(steps), math.exp(abs(math.log(sizes[-1] / sizes[0])))
    if (largest := max(steps)) >= GROWN and largest**2 > ratio:
        # One of them does more than all others together.
        ratio, at = largest, steps.index(largest)
        behind = at + 1
    place = min(behind, len(rounds) - 1)
    first, end = visible(rounds[at].name), visible(rounds[place].name)
    times = numbers.number(float(f"{ratio:.3g}"))
    change = f"grows ×{times}" if grows else f"falls to 1/{times}"
    way = f"in {end}" if place == at else f"from {first} back to {end}"
    if at < place < behind:
        way = f"from {first} back through {end}"
    before = f"‖g‖ {change} {way}"
    # Rounds, and modules that are numbers alone, are drawn as one.
    came, left = numbers.number(sizes[at]), numbers.number(sizes[behind])
    # What goes on is no number of the round that the words stand at.
    words = f"{change} since {short(first)}" if "." in first and at < place else change
    words += f", {came} to {left}" if behind > place else ""
    after = f": {came} arrives, {left} goes on" if behind > place else f", {came} to {left}"
    # To explode is as bad as to vanish.
    severity: Severity = "warning" if grows and ratio * VANISHED >= 1 else "information"
    return Course(before, after, words, place, severity, True, behind > place)


def span(infos: Sequence[GradientInfo]) -> str:
    """``0.607–0.838``: the smallest and the largest norm, or the one that all have; "" where none
    is known."""
    known = [float(info.norm) for info in infos if info.state == "finite" and info.norm is not None]
    words = map(numbers.number, (min(known), max(known)) if known else ())
    return "\u2013".join(dict.fromkeys(words))


def sizes(infos: Sequence[GradientInfo], bad: str, lead: str = "") -> str:
    """How many gradients have no size to compare, and after ``lead`` the range of the others."""
    known = span(infos)
    return " · ".join(filter(None, (odd(infos, bad), known and f"{lead}{known}")))


_STATES = {
    "non-finite": "✖ not finite",
    "zero": "0",
    "none": "no grad",
    "not reached": "not reached",
}


def exceptions(rounds: Sequence[Round]) -> str:
    """``0 in 292 of 500, first in round 292``: rounds without a size to compare, made visible."""
    words = (_apart(rounds, state, word) for state, word in _STATES.items())
    return " · ".join(word for word in words if word)


def _apart(rounds: Sequence[Round], state: str, word: str) -> str:
    """How many rounds are in a state that has no size, and the first of them."""
    found = [one for one in rounds if one.info.state == state]
    if not found:
        return ""
    if len(found) == len(rounds):
        return f"{word} in all"
    return f"{word} in {len(found):,} of {len(rounds):,}, first in {visible(found[0].name)}"


def odd(infos: Sequence[GradientInfo], bad: str) -> str:
    """``✖ 3 of 12``, ``0 in 3 of 12``: how many rounds have no size to compare, in few cells."""
    counts = {state: sum(info.state == state for info in infos) for state in _STATES}
    word = next((state for state, many in counts.items() if many), None)
    if word is None:
        return ""
    sign = bad if word == "non-finite" else f"{_STATES[word]} in"
    many = "all" if counts[word] == len(infos) else f"{counts[word]:,} of {len(infos):,}"
    return f"{sign} {many}"


def short(name: str) -> str:
    """The end of a module's path that tells it from its siblings: ``h.3``."""
    return ".".join(name.split(".")[-2:])


def _is_sized(one: Round) -> bool:
    return one.info.state in ("finite", "zero")


def _size(one: Round) -> float:
    return float(one.info.norm or 0)


def _told(one: Round) -> str:
    return f"{numbers.number(_size(one))} in {visible(one.name)}"
