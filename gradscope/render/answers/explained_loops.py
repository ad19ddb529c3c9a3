"""Steps of a loop that are alike: the first and the last round are told, and how many there are.

Must not know how a step is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gradscope.model.explanation import ChainStep
from gradscope.render.answers.explained import INDENT, Explained
from gradscope.simplify.sequences import find_repeats
from gradscope.words import count, option


@dataclass(frozen=True)
class Rounds:
    """One step, or the steps of a loop, a tuple for each round; in the order of backward."""

    rounds: tuple[tuple[ChainStep, ...], ...]

    @property
    def told(self) -> tuple[tuple[ChainStep, ...], ...]:
        """The rounds that are told: the first and the last."""
        return self.rounds if len(self.rounds) < 2 else (self.rounds[0], self.rounds[-1])

    @property
    def nodes(self) -> list[int]:
        """The nodes of all rounds."""
        return [step.node for one in self.rounds for step in one]


def folded(explained: Explained) -> list[Rounds]:
    """All steps that are explained, those of loops together; nothing where all is asked for."""
    steps = explained.answer.steps
    nodes = [step.node for step in steps]
    found: list[Rounds] = []
    done = 0
    for start, period, times in [] if explained.everything else repeats(explained, nodes):
        end = start + period * times
        found += (Rounds(((step,),)) for step in steps[done:start])
        found.append(Rounds(tuple(steps[at : at + period] for at in range(start, end, period))))
        done = end
    return found + [Rounds(((step,),)) for step in steps[done:]]


def repeats(explained: Explained, nodes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Where nodes that the same operations of the same lines made follow each other, as
    :func:`find_repeats` says it; none goes on over a root, which would not be told."""
    roots = {root.node for root in explained.graph.roots}
    starts = [place for place, node in enumerate(nodes) if node in roots and place]
    numbers: dict[object, int] = {}
    for start, end in pairwise([0, *starts, len(nodes)]):
        records = (explained.graph.nodes[node] for node in nodes[start:end])
        keys = ((one.op, one.origin, one.backward_made) for one in records)
        words = [numbers.setdefault(key, len(numbers)) for key in keys]
        yield from ((start + at, period, times) for at, period, times in find_repeats(words))


def heading(explained: Explained, loop: Rounds) -> str:
    """``▸ #2…#9 Mul  y = y * 2 ×8``, and the line if it is one."""
    records = [explained.graph.nodes[step.node] for step in loop.rounds[0]]
    title = ", ".join(explained.title(record) for record in records)
    expressions = dict.fromkeys(explained.expression(record) for record in records)
    expression = f"  {next(iter(expressions))}" if len(expressions) == 1 else ""
    places = {explained.scene.place(record.origin) for record in records}
    ids = f"#{loop.nodes[0]}…#{loop.nodes[-1]}"
    text = f"{explained.glyphs.module} {ids} {title}{expression} ×{len(loop.rounds):,}"
    return explained.headline(text, places.pop() if len(places) == 1 else "")


def between(explained: Explained, loop: Rounds) -> Iterator[str]:
    """What stands in place of the rounds that are not told."""
    left = loop.rounds[1:-1]
    first, last = left[0][0].node, left[-1][-1].node
    ids = f"#{first}" if first == last else f"#{first} to #{last}"
    times = count(len(left), "round") if len(left[0]) > 1 else f"{len(left):,}"
    text = f"… {times} in the same way, {ids}: {option('all')}"
    yield explained.fitted(" " * INDENT + text, "dim")
