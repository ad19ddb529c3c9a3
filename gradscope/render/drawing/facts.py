"""Facts about an item that a drawing shows where there is something to say: opposing gradients, and
bytes that were saved.

Must not know of any one format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from gradscope.render.drawing.scene import Scene
from gradscope.render.words import numbers
from gradscope.simplify import Item

RANGE = "\u2013"


def cancelling(share: float) -> str:
    """``93 %``: how much of several contributions cancels."""
    return f"{100 * share:.3g} %"


def skipped(shares: Sequence[float]) -> str:
    """``skip 83 % + branch 17 %``; of several rounds ``skip 71\u201393 %``; "" for none."""
    if not shares:
        return ""
    ends = [f"{100 * share:.0f}" for share in (min(shares), max(shares))]
    if len(shares) == 1:
        return f"skip {ends[0]} % + branch {100 - int(ends[0])} %"
    return f"skip {RANGE.join(dict.fromkeys(ends))} %"


def residuals(scene: Scene, item: Item) -> list[float]:
    """Which share of the gradient that enters an item came through a skip, and not through what was
    added to it; of what a template holds in every round.  None where it is no such sum."""
    gradients = scene.gradients
    if gradients is None or (item.folded and item.template is not None):
        return []
    places: list[tuple[int, int]] = [(nodes[0], 0) for nodes in item.rounds if nodes]
    if item.template is None:
        places = list(gradients.arrivals(item))
    shares = [share for share in starmap(gradients.residual, places) if share is not None]
    return shares if item.template is not None or len(shares) == len(places) == 1 else []


def meeting(scene: Scene, item: Item) -> str:
    """What is to be said of gradients that meet in an item, or ""."""
    return " · ".join(filter(None, (skipped(residuals(scene, item)), cancelled(scene, item))))


def opposing(scene: Scene, item: Item) -> list[float]:
    """The shares that cancel where gradients that meet in a node oppose each other; of what a
    template holds those of all rounds."""
    gradients = scene.gradients
    if gradients is None or item.folded:
        return []
    outputs = range(len(scene.graph.nodes[item.members[0]].outputs) or 1)
    places = [(node, output) for node in item.members for output in outputs]
    return [share for share in starmap(gradients.cancelled, places) if share is not None]


def cancelled(scene: Scene, item: Item) -> str:
    """``2 gradients cancel 93 %``, where those that meet in a node oppose each other; of what a
    template holds the most of any round, ``cancels up to 93 %``; else ""."""
    shares = opposing(scene, item)
    if not shares or scene.gradients is None:
        return ""
    if item.template is not None:
        return f"cancels up to {cancelling(max(shares))}"
    many = len(scene.gradients.contributions(item.members[0]))
    return f"{many:,} gradients cancel {cancelling(max(shares))}"


def saved(scene: Scene, item: Item) -> int:
    """How many bytes the nodes of an item saved, where that is what is shown."""
    overlay = scene.options.overlay
    return sum(overlay.bytes.get(node, 0) for node in item.members) if overlay else 0


def most_saved(scene: Scene) -> int:
    """The most bytes that one item saved; 0 where that is not what is shown."""
    return max((saved(scene, item) for item in scene.view.items), default=0)


def saved_words(scene: Scene, item: Item) -> str:
    """``89.9 MiB saved · 41.2%``, or ""."""
    overlay, amount = scene.options.overlay, saved(scene, item)
    if overlay is None or not amount:
        return ""
    return f"{numbers.size(amount)} saved · {numbers.share(amount, overlay.total)}"
