"""What a reader should take away of one scene, in a sentence: the same in every medium.

Must not say more than what was seen, nor know where it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.model.observations import Severity
from gradscope.model.plain import State, in_rows
from gradscope.model.report import Graph, around
from gradscope.render.drawing.blame import AT_A_GLANCE, times
from gradscope.render.drawing.facts import cancelling
from gradscope.render.drawing.scale import Round, first_of_bulk, grown, vanished
from gradscope.render.drawing.scene import Scene
from gradscope.render.words.numbers import number
from gradscope.words import count, listed, pattern

FEWEST_BLOCKS = 3
"""Modules of one class of which the largest and smallest gradient are named."""

FEW_LEAVES = 8

MOST_CANCELLED = 2
"""Leaves at which gradients cancel that are named."""


def sentences(scene: Scene) -> list[str]:
    """What is wrong with the gradients of a pass, as far as they show it: where the first NaN or
    infinity is and which leaves it reaches, leaves that get only zeros, from where on next to
    nothing arrives, at which operation it is lost before any leaf.  Where nothing is, at which
    operation it grows at once, and what many leaves get; and where those of a leaf cancel.
    Findings say it better, but for modules that were never called.  Of a comparison its own.
    """
    if scene.options.verdict:
        return [scene.options.verdict]
    absent = _not_called(scene)
    told: Sequence[str] = (absent,)
    if alarm(scene):
        told = (_spoilt(scene), absent)
    elif not scene.report.findings and scene.gradients is not None:
        rows = [*_in_a_row(scene)]
        vanishes = _first(scene, ((vanished(one, where), nodes) for one, where, nodes in rows))
        grows = _first(scene, ((grown(one), nodes) for one, _, nodes in rows))
        lost = " · ".join(filter(None, (_zeros(scene), vanishes, _falls(scene))))
        told = (absent, lost or grows)
        if not lost:
            told += (_leaps(scene), *([] if absent else _sizes(scene)))
        told += ("" if vanishes else _cancels(scene),)
    return [*filter(None, told)]


def verdict(scene: Scene) -> str:
    """All of it in one line."""
    return " · ".join(sentences(scene))


class Mark(NamedTuple):
    """A node that the verdict is about: how bad it is, what it does in a few words, and its line as
    an index into the graph's origins, -1 for one that is not known."""

    node: int
    severity: Severity
    words: str
    origin: int


def marks(scene: Scene) -> list[Mark]:
    """Where the verdict is marked, worst first; findings and what is not finite have marks of their
    own."""
    turn = scene.blame.turn
    if turn is None or scene.report.findings or scene.blame.first_bad is not None:
        return []
    origin = scene.graph.nodes[turn.node].line
    return [Mark(*turn, -1 if origin is None else origin)]


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


def _sizes(scene: Scene) -> Iterator[str]:
    """The smallest and the largest gradient of leaves that all get one; of those that get next to
    nothing how many there are."""
    names = _leaves(scene, "finite")
    if scene.gradients is None or not 1 < len(names) == len(scene.graph.leaves):
        return
    norms = [scene.gradients.leaf(place).norm for place in range(len(names))]
    known = sorted((float(norm), name) for norm, name in zip(norms, names, strict=True) if norm)
    if not known:
        return
    few = first_of_bulk([math.log10(norm) for norm, _ in known])
    if few:
        # Of one place in each layer that is said once.
        same = pattern([name for _, name in known[:few]])
        little = same if "…" not in same else listed(name for _, name in known[:few])
        most = number(known[few - 1][0])
        yield f"{_get(scene, range(few))} next to nothing beside others, ‖g‖ up to {most}: {little}"
    if len(names) <= FEW_LEAVES and len(scene.graph.nodes) <= AT_A_GLANCE:
        return
    which = f"other {len(known) - few:,}" if few else f"graph's {len(names):,}"
    ends = (f"{number(norm)} ({name})" for norm, name in (known[few], known[-1]))
    yield f"the {which} leaves get ‖g‖ {' to '.join(ends)}"


def _leaps(scene: Scene) -> str:
    """The operation at which a gradient grows most, element by element."""
    found = scene.blame.leap
    return f"‖g‖ grows ×{times(found)} at {scene.name_node(found.node)}" if found else ""


def _cancels(scene: Scene) -> str:
    """Leaves whose gradients oppose each other, those that cancel most first."""
    found = scene.gradients
    if found is None:
        return ""
    known = sorted(
        (-share, len(found.contributions(leaf.node)), visible(leaf.name))
        for leaf in scene.graph.leaves
        if (share := found.cancelled(leaf.node)) is not None
    )
    words = (f"{many:,} gradients cancel {cancelling(-one)} at {name}" for one, many, name in known)
    return listed(words, MOST_CANCELLED)


def _spoilt(scene: Scene) -> str:
    bad = _leaves(scene, "non-finite")
    return f"{alarm(scene)}; {_get(scene, bad)} NaN or infinity"


def alarm(scene: Scene) -> str:
    """A sentence on the first gradient that is not finite, or ""; findings say it better."""
    is_told = scene.report.findings or scene.options.verdict
    if scene.blame.first_bad is None or is_told or scene.backward is None:
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


def _get(scene: Scene, names: Sized) -> str:
    """``2 of 3 leaves get``, of so many names."""
    every = len(scene.graph.leaves)
    if len(names) in (0, every):
        return "every leaf gets" if names else "no leaf gets"
    return f"{len(names):,} of {count(every, 'leaf')} {'gets' if len(names) == 1 else 'get'}"


Row = tuple[list[Round], str, Sequence[Sequence[int]]]


def _in_a_row(scene: Scene) -> Iterator[Row]:
    """What enters the modules of which most is made, or the rounds of each repeat, where they are,
    `` in cell`` or `` at rnn.py:7``, and the nodes of each."""
    if alike := _alike(scene):
        parents = {path.rpartition(".")[0] for path in alike[1]}
        where = f"{visible(parent)}.*" if len(parents) == 1 and (parent := parents.pop()) else ""
        yield _entering(scene, alike[1]), f" in {where or alike[0]}", [*alike[1].values()]
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        if frame.carried and len(rounds) >= FEWEST_BLOCKS:
            yield rounds, f" in {visible(frame.title)}", frame.called or frame.rounds
    for item in scene.view.items:
        if item.template is None and item.rounds:
            place = scene.source(item)
            nodes = item.called or item.rounds
            yield scene.rounds(item), f" at {place}" if place else "", nodes


def _first(scene: Scene, told: Iterable[tuple[str, Sequence[Sequence[int]]]]) -> str:
    """The first sentence on modules or rounds of which each gets its gradient by way of the one
    before, and which do not stand side by side, as heads."""
    each = (words for words, nodes in told if words and not _is_apart(scene.graph, nodes))
    return next(each, "")


def repeats(scene: Scene) -> Iterator[tuple[str, list[Round]]]:
    """The class of which most of the graph is made, and other repeats that are drawn once, with the
    gradient that enters each of their modules; those that are too few to compare are left out."""
    alike = _alike(scene)
    if alike is not None:
        kind, modules = alike
        every = sum(visible(call.type) == kind for call in scene.graph.calls)
        parents = ", ".join(dict.fromkeys(path.rpartition(".")[0] for path in modules))
        where = f" in {visible(parents)}" if every > len(modules) and parents else ""
        if rounds := _entering(scene, modules):
            yield f"{kind}{where}", rounds
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        kind = visible(frame.type or frame.title)
        if len(rounds) >= FEWEST_BLOCKS and (alike is None or kind != alike[0]):
            yield kind, rounds


def _alike(scene: Scene) -> tuple[str, dict[str, list[int]]] | None:
    """The class of modules beside each other of which most of the graph is made, and by their paths
    the nodes that were made in these; the same in every drawing."""
    calls = scene.graph.calls
    children: dict[int | None, list[int]] = {}
    for place, call in enumerate(calls):
        children.setdefault(call.parent, []).append(place)
    made = [(node.id, node.call) for node in scene.graph.nodes if node.kind != "leaf"]
    each: dict[int, list[int]] = {}
    for node, inner in made:
        for place in around(calls, inner):
            each.setdefault(place, []).append(node)
    outer: int | None = None
    while level := [place for place in children.get(outer, ()) if place in each]:
        alike: dict[str, list[int]] = {}
        for place in level:
            alike.setdefault(calls[place].type, []).append(place)
        for kind, places in alike.items():
            modules = {
                calls[place].path: each[place] for place in sorted(places, key=each.__getitem__)
            }
            # Of what is called more than once a path would name no call.
            is_most = 2 * sum(map(len, modules.values())) > len(made)
            if is_most and len(places) == len(modules) >= FEWEST_BLOCKS:
                return visible(kind), modules
        outer = max(level, key=lambda place: len(each[place]))
        if 2 * len(each[outer]) <= len(made):
            break
    return None


def _entering(scene: Scene, modules: dict[str, list[int]]) -> list[Round]:
    """The gradient that enters each of these modules."""
    found = scene.gradients
    if found is None:
        return []
    return [Round(path, found.crossing({*nodes})) for path, nodes in modules.items()]


def _is_apart(graph: Graph, modules: Sequence[Sequence[int]]) -> bool:
    """Whether some of these modules, in the order of backward, are on no way through all."""
    places = {node: place for place, nodes in enumerate(modules) for node in nodes}
    # How many of them the longest way to a node goes through, its own counted.
    depth = [int(node.id in places) for node in graph.nodes]
    for edge in sorted(graph.edges, key=lambda edge: edge.source):
        place = places.get(edge.target)
        is_next = place is not None and place != places.get(edge.source)
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + is_next)
    return max((depth[node] for node in modules[-1]), default=0) < len(modules)
