"""What a reader should take away of one scene, in a sentence: the same in every medium.

Must not say more than what was seen, nor know where it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap

from gradscope.escaping import visible
from gradscope.model.plain import State, in_rows
from gradscope.render.drawing.scale import Round, grown, vanished
from gradscope.render.drawing.scene import Scene
from gradscope.render.words.numbers import number
from gradscope.simplify.view import Item
from gradscope.words import count, listed

FEWEST_BLOCKS = 3
"""Modules of one class of which the largest and smallest gradient are named."""


AT_A_GLANCE = 60
"""Nodes of a graph whose leaves, if they are few, a reader has seen without being told which has
the largest gradient."""

FEW_LEAVES = 8


def sentences(scene: Scene) -> list[str]:
    """What is wrong with the gradients of a pass, as far as they show it: where the first NaN or
    infinity is and which leaves it reaches, leaves that get only zeros, from where on next to
    nothing arrives, at which operation it is lost before any leaf.  Where nothing is, what many
    leaves get; "" for few.  Findings say it better, but for modules that were never called.
    """
    absent = _not_called(scene)
    told: Sequence[str] = (absent,)
    if alarm(scene):
        told = (_spoilt(scene), absent)
    elif not scene.report.findings and scene.gradients is not None:
        lost = " · ".join(filter(None, (_zeros(scene), vanishing(scene), _falls(scene))))
        told = (absent, lost or growing(scene), "" if absent or lost else _sizes(scene))
    return [*filter(None, told)]


def verdict(scene: Scene) -> str:
    """All of it in one line."""
    return " · ".join(sentences(scene))


def _not_called(scene: Scene) -> str:
    """The modules of a list that were not called before this look, though others of it were: with
    several calls in view, a later one may do so."""
    paths = [*map(visible, scene.graph.absent)]
    whose = "were not called: their" if len(paths) > 1 else "was not called: its"
    return f"{listed(paths)} {whose} parameters get no gradient" if paths else ""


def _falls(scene: Scene) -> str:
    """The operation on the only way from the root to all leaves that leaves next to nothing."""
    if scene.blame.fall is None:
        return ""
    node, before, after = scene.blame.fall
    sizes = f"{number(before)} to {number(after)}"
    return f"‖g‖ falls from {sizes} at {scene.name_node(node)}, before any leaf"


def _sizes(scene: Scene) -> str:
    """The smallest and the largest gradient of leaves that all get one."""
    names = _leaves(scene, "finite")
    is_seen = len(names) <= FEW_LEAVES and len(scene.graph.nodes) <= AT_A_GLANCE
    if scene.gradients is None or is_seen or not 1 < len(names) == len(scene.graph.leaves):
        return ""
    norms = [scene.gradients.leaf(place).norm for place in range(len(names))]
    known = [(float(norm), name) for norm, name in zip(norms, names, strict=True) if norm]
    if not known:
        return ""
    ends = (f"{number(norm)} ({name})" for norm, name in (min(known), max(known)))
    return f"the graph's {len(names):,} leaves get ‖g‖ {' to '.join(ends)}"


def _spoilt(scene: Scene) -> str:
    bad = _leaves(scene, "non-finite")
    return f"{alarm(scene)}; {_get(scene, bad)} NaN or infinity"


def alarm(scene: Scene) -> str:
    """A sentence on the first gradient that is not finite, or ""; findings say it better."""
    if scene.blame.first_bad is None or scene.report.findings or scene.backward is None:
        return ""
    node, made_here = scene.blame.first_bad
    what = "makes" if made_here else "receives"
    sent = zip(scene.graph.edges, scene.backward.edges, strict=True)
    infos = (scene.backward.gradients[entry] for edge, entry in sent if edge.source == node)
    rows = in_rows(info.rows for info in infos) if made_here else ""
    return f"{scene.name_node(node)} {what} the first NaN or infinity in backward order{rows}"


def _zeros(scene: Scene) -> str:
    silent = _leaves(scene, "zero")
    names = "" if len(silent) == len(scene.graph.leaves) else f": {listed(silent)}"
    return f"{_get(scene, silent)} only zeros{names}" if silent else ""


def _leaves(scene: Scene, state: State) -> list[str]:
    """The names of the leaves whose gradient is in a state."""
    if scene.gradients is None:
        return []
    leaves = enumerate(scene.graph.leaves)
    found = [leaf for place, leaf in leaves if scene.gradients.leaf(place).state == state]
    return [visible(leaf.name) for leaf in found]


def _get(scene: Scene, names: Sequence[str]) -> str:
    """``2 of 3 leaves get``, of so many names."""
    every = len(scene.graph.leaves)
    if len(names) in (0, every):
        return "every leaf gets" if names else "no leaf gets"
    return f"{len(names):,} of {count(every, 'leaf')} {'gets' if len(names) == 1 else 'get'}"


def vanishing(scene: Scene) -> str:
    """From where on next to nothing of a gradient arrives, or ""."""
    return next(filter(None, starmap(vanished, _in_a_row(scene))), "")


def growing(scene: Scene) -> str:
    """How many times as large or as small a gradient becomes from round to round, or ""."""
    return next(filter(None, (grown(rounds) for rounds, _ in _in_a_row(scene))), "")


def _in_a_row(scene: Scene) -> Iterator[tuple[list[Round], str]]:
    """What enters the rounds of each repeat, and where it is, `` in cell`` or `` at rnn.py:7``."""
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        if frame.carried and len(rounds) >= FEWEST_BLOCKS:
            yield rounds, f" in {visible(frame.title)}"
    for kind, items in _alike(scene):
        # Each gets its gradient by way of the one before; not what stands side by side, as heads.
        if not _is_apart(scene, items):
            yield _entering(scene, items), f" in {kind}"
    for item in scene.view.items:
        if item.template is None:
            place = scene.source(item)
            yield scene.rounds(item), f" at {place}" if place else ""


def repeats(scene: Scene) -> Iterator[tuple[str, list[Round]]]:
    """The repeats that are drawn once, or else the class of which most of the graph is made, with
    the gradient that enters each of their modules; those that are too few to compare are left
    out."""
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        if len(rounds) >= FEWEST_BLOCKS:
            yield visible(frame.type or frame.title), rounds
    for kind, items in _alike(scene):
        yield kind, _entering(scene, items)


def _alike(scene: Scene) -> Iterator[tuple[str, list[Item]]]:
    """The class of modules of which most of the graph is made, and these, where nothing is drawn
    once for many and gradients flowed."""
    if scene.view.templates or scene.gradients is None:
        return
    alike: dict[str, list[Item]] = {}
    for item in scene.view.items:
        if item.kind == "module":
            alike.setdefault(item.type, []).append(item)
    for item in scene.view.items:
        # Of which some are not seen one by one.
        if item.kind == "repeat":
            alike.pop(item.type, None)
    for kind, items in alike.items():
        most = 2 * sum(len(item.members) for item in items) > len(scene.graph.nodes)
        if most and len(items) >= FEWEST_BLOCKS:
            yield visible(kind), items


def _entering(scene: Scene, items: Sequence[Item]) -> list[Round]:
    """The gradient that enters each of these modules."""
    found = scene.gradients
    return [Round(item.title, found.entering(item)) for item in items] if found else []


def _is_apart(scene: Scene, items: Sequence[Item]) -> bool:
    """Whether some of these items, in topological order, are on no way through all of them."""
    links, inside = scene.view.links, {item.id for item in items}
    # How many of them the longest way to an item goes through, itself counted.
    depth = [int(item.id in inside) for item in scene.view.items]
    for link in sorted(links, key=lambda link: link.source):
        steps = depth[link.source] + (link.target in inside)
        depth[link.target] = max(depth[link.target], steps)
    return depth[items[-1].id] < len(items)
