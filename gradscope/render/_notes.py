"""Further rows under an item: the sum of what arrived on several edges, the norms of what repeats,
and what it saved for backward."""

from __future__ import annotations

from typing import NamedTuple

from gradscope.plain import TensorInfo
from gradscope.render import numbers
from gradscope.render._scene import Scene
from gradscope.render._strip import Round, exceptions
from gradscope.render._text import visible
from gradscope.report import GradientInfo
from gradscope.simplify import Item


class Note(NamedTuple):
    """A row that is no edge.  ``total`` is set on sums; ``tensor`` is what the row is about.
    ``rounds`` are those of a repeat: what has no size to compare beside their strip, or where
    ``is_extremes`` the largest and smallest."""

    title: str
    tensor: TensorInfo | None
    total: GradientInfo | None = None
    remark: str = ""
    rounds: tuple[Round, ...] = ()
    is_extremes: bool = False


def notes_of(scene: Scene, item: Item) -> list[Note]:
    """The notes of an item, sums first."""
    return [*_sums(scene, item), *_strips(scene, item), *_saved(scene, item)]


def _strips(scene: Scene, item: Item) -> list[Note]:
    rounds = tuple(scene.rounds(item))
    if len(rounds) < 2:
        return []
    first = Note("", None, rounds=rounds)
    return [first, first._replace(is_extremes=True)] if exceptions(rounds) else [first]


def _sums(scene: Scene, item: Item) -> list[Note]:
    """The upstream gradient wherever it is the sum of several; of a closed module, all that enters
    it."""
    reading = scene.reading
    if reading is None or len(scene.incoming[item.id]) + scene.view.roots.count(item.id) < 2:
        return []
    arrivals = reading.arrivals(item)
    given = {(root.node, root.output) for root in scene.graph.roots}
    if item.folded:
        return [Note("", None, reading.entering(item), _arriving(sum(arrivals.values()), False))]
    return [
        Note(
            f"[{output}]" if output else "",
            scene.tensor(node, output),
            reading.backward.at(node, output),
            _arriving(amount, (node, output) in given),
        )
        for (node, output), amount in arrivals.items()
        if amount > 1
    ]


def _arriving(amount: int, given: bool) -> str:
    """How many gradients were added; the one given for a root came along no edge."""
    if given:
        return f"sum of {numbers.count(amount - 1, 'edge')} and the given"
    return f"sum of {amount:,} edges"


def _saved(scene: Scene, item: Item) -> list[Note]:
    if not scene.options.saved or item.folded:
        return []
    node = scene.graph.nodes[item.members[0]]
    return [Note(visible(name), tensor, remark="saved for backward") for name, tensor in node.saved]
