"""Facts about an item that a drawing shows where there is something to say: opposing gradients, and
bytes that were saved.

Must not know of any one format."""

from __future__ import annotations

from itertools import starmap

from gradscope.render.drawing.scene import Scene
from gradscope.render.words import numbers
from gradscope.simplify import Item


def cancelling(share: float) -> str:
    """``93 %``: how much of several contributions cancels."""
    return f"{100 * share:.3g} %"


def cancelled(scene: Scene, item: Item) -> str:
    """``2 gradients cancel 93 %``, where those that meet in a node oppose each other; of what a
    template holds the most of any round, ``cancels up to 93 %``; else ""."""
    gradients = scene.gradients
    if gradients is None or item.folded:
        return ""
    outputs = range(len(scene.graph.nodes[item.members[0]].outputs) or 1)
    places = [(node, output) for node in item.members for output in outputs]
    shares = [share for share in starmap(gradients.cancelled, places) if share is not None]
    if not shares:
        return ""
    if item.template is not None:
        return f"cancels up to {cancelling(max(shares))}"
    meeting = len(gradients.contributions(item.members[0]))
    return f"{meeting:,} gradients cancel {cancelling(max(shares))}"


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
