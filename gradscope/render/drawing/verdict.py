"""What a reader should take away of one scene, in a sentence: the same in every medium.

Must not say more than what was seen, nor know where it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.escaping import visible
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.strip import Round, vanished
from gradscope.simplify import Item

FEWEST_BLOCKS = 3
"""Modules of one class of which the largest and smallest gradient are named."""


def vanishing(scene: Scene) -> str:
    """From where on next to nothing of a gradient arrives, or ""; findings say it better."""
    if scene.report.findings:
        return ""
    inside = [scene.rounds(item) for item in scene.view.items]
    found = [*(rounds for _, rounds in repeats(scene)), *filter(None, inside)]
    return next(filter(None, map(vanished, found)), "")


def repeats(scene: Scene) -> Iterator[tuple[str, list[Round]]]:
    """The repeats that are drawn once, or else the class of which most of the graph is made, with
    the gradient that enters each of their modules; those that are too few to compare are left
    out."""
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        if len(rounds) >= FEWEST_BLOCKS:
            yield visible(frame.type or frame.title), rounds
    if scene.view.templates or scene.gradients is None:
        return
    alike: dict[str, list[Item]] = {}
    for item in scene.view.items:
        if item.kind == "module":
            alike.setdefault(item.type, []).append(item)
    for kind, items in alike.items():
        most = 2 * sum(len(item.members) for item in items) > len(scene.graph.nodes)
        if most and len(items) >= FEWEST_BLOCKS:
            yield (
                visible(kind),
                [Round(item.title, scene.gradients.entering(item)) for item in items],
            )
