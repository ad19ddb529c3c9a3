"""What a reader should take away of one scene, in a sentence: the same in every medium.

Must not say more than what was seen, nor know where it is shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from gradscope.escaping import visible
from gradscope.model.invariants import EPSILON, FLOAT32_EPSILON
from gradscope.model.plain import State, in_rows
from gradscope.model.report import BackwardPass, Graph, Leaf, around, only_arrival
from gradscope.render.drawing.blame import AT_A_GLANCE, times
from gradscope.render.drawing.facts import HOOKED, cancelling
from gradscope.render.drawing.scale import (
    VANISHED,
    Course,
    Round,
    first_of_bulk,
    grown,
    short,
    vanished,
)
from gradscope.render.drawing.scene import MOST_NAMED, Scene
from gradscope.render.words.numbers import number
from gradscope.render.words.text import BADGES, worst
from gradscope.simplify import Folding
from gradscope.simplify.hierarchy import with_class
from gradscope.simplify.view import Item
from gradscope.words import count, listed, pattern

if TYPE_CHECKING:
    from gradscope.model.observations import Severity
    from gradscope.simplify.gradients import ViewGradients

FEWEST_BLOCKS = 3
"""Modules of one class of which the largest and smallest gradient are named."""

FEW_LEAVES = 8

MOST_CANCELLED = 2
"""Leaves at which gradients cancel that are named."""

BIAS_SLOTS = {"Addmm": 0, "Convolution": 2}
"""The slot of a bias, which gets the sum of what arrives."""

ROUNDING = 100
"""A sum of so many times the distance of 1 to the next number, beside what it is of, is what
rounding leaves."""

MOST_ROUNDED = 1e-5
"""Of any dtype."""


class Spot(NamedTuple):
    """A node that the verdict is about, -1 where a line alone is: how bad it is, what it does in a
    few words, its line as an index into the graph's origins, -1 for one that is not known,
    whether what is meant is the round that begins with it, what a leaf is called in its module,
    and lines that take it and are not meant."""

    node: int
    severity: Severity
    words: str
    origin: int
    is_round: bool = False
    leaf: str = ""
    silent: tuple[str, ...] = ()

    @property
    def pieces(self) -> list[str]:
        """The words in pieces, of which the last go first where there is no room."""
        return re.split(r"(?=, |(?<=\d) to | since | from )", self.words)


class Told(NamedTuple):
    """A sentence, and the nodes that it is about.  ``is_fine``: nothing stands out; ``least``: how
    bad it is where it is about no node."""

    words: str = ""
    spots: Sequence[Spot] = ()
    is_fine: bool = False
    least: Severity | None = None

    @property
    def severity(self) -> Severity | None:
        """How bad what it says is; None where that is nothing to look at."""
        return worst(spot.severity for spot in self.spots) or self.least


FINE = "✓"
"""Stands before a sentence beside which there is nothing to say."""


_KNOWN = WeakKeyDictionary[Scene, list[Told]]()
"""The verdict on each scene that is there: a drawing says it, and marks what it is about."""


def _told(scene: Scene) -> list[Told]:
    if scene not in _KNOWN:
        _KNOWN[scene] = [*_found(scene)]
    return _KNOWN[scene]


def _found(scene: Scene) -> Iterator[Told]:
    """What is wrong with the gradients of a pass, as far as they show it: where the first NaN or
    infinity is and which leaves it reaches, leaves that get only zeros, from where on next to
    nothing arrives, at which operation it is lost before any leaf.  Where nothing is, at which
    operation it grows at once, and what many leaves get; and where those of a leaf cancel.
    Findings say it better, but for modules that were never called.  Of a comparison its own.
    """
    if scene.options.verdict:
        yield Told(scene.options.verdict)
        return
    absent, bad = _not_called(scene), alarm(scene)
    if bad:
        spoilt = _get(scene, _leaves(scene, "non-finite"))
        yield Told(f"{bad}; {spoilt} NaN or infinity", _turn(scene), least="error")
    yield Told(absent, [*_incomplete(scene.graph)])
    if scene.report.findings or scene.gradients is None:
        return
    if bad:
        yield _hooked(scene)
        return
    rows = [*_in_a_row(scene)]
    vanishes = _first(scene, rows, lambda rounds, _: vanished(rounds))
    leaving = scene.gradients.leaving
    grows = _first(scene, rows, lambda rounds, ends: grown(rounds, lambda: leaving({*ends[-1]})))
    lost = [one for one in (_zeros(scene), vanishes, _falls(scene)) if one.words]
    marks = [spot for one in lost for spot in one.spots]
    yield Told(" · ".join(one.words for one in lost), marks, least="information")
    yield _hooked(scene)
    if not lost:
        yield grows
        yield _leaps(scene)
        yield from _sizes(scene, bool(absent))
    if not vanishes.words:
        yield _cancels(scene)


def sentences(scene: Scene, call: str = "") -> list[tuple[str, Severity | None]]:
    """The verdict in sentences, none where there is nothing to say; each after the sign of what it
    is about in the drawing, and ``call``, and with how bad that is."""
    every = [one for one in _told(scene) if one.words]
    signs = [BADGES[one.severity] if one.severity else "" for one in every]
    if len(every) == 1 and every[0].is_fine:
        signs = [FINE]
    pairs = zip(signs, every, strict=True)
    lead = "" if scene.options.verdict else call
    return [(f"{sign} {lead}{one.words}".lstrip(), one.severity) for sign, one in pairs]


class Marks:
    """Where the verdict on a scene is marked in it; findings have marks of their own."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @cached_property
    def spots(self) -> list[Spot]:
        """The nodes that the verdict is about, worst first."""
        found = [spot for one in _told(self._scene) for spot in one.spots]
        return sorted(found, key=lambda spot: [*BADGES].index(spot.severity))

    @cached_property
    def _drawn(self) -> list[Spot]:
        """Leaves say themselves what becomes of their gradients, and closed modules of theirs."""
        return [spot for spot in self.spots if spot.node >= 0 and not spot.leaf]

    def of_frame(self, frame: Item) -> Spot | None:
        """The worst of the rounds of what is drawn once for all."""
        found = (spot for spot in self._drawn if spot.is_round and spot.node in frame.members)
        return next(found, None)

    def in_frame(self, frame: Item) -> Spot | None:
        """The worst in one of the rounds of what is drawn once for all, with that round."""
        drawn = {spot.node for spot in self._drawn if not spot.is_round} & {*frame.members}
        return next((spot for spot in self.placed if spot.node in drawn), None)

    def of(self, item: Item) -> Spot | None:
        """The worst in an item."""
        inside = {*item.members} if self.spots else set()
        # What stands for many rounds is in a frame, which says what is meant of a round.
        own = (spot for spot in self._drawn if item.template is None or not spot.is_round)
        spot = next((spot for spot in own if spot.node in inside), None)
        if spot is None:
            every = self._scene.graph.nodes
            # Leaves that are drawn as one say themselves what becomes of their gradients.
            is_of_ops = item.folded and any(every[node].kind != "leaf" for node in inside)
            return self.of_leaves(inside, self._scene.times(item)) if is_of_ops else None
        return self._placed(spot, item)

    @cached_property
    def placed(self) -> list[Spot]:
        """The spots, each with the round that it is in, where that is drawn once for all."""
        drawn = [item for item in self._scene.view.items if item.template is not None]
        return [
            next((self._placed(spot, one) for one in drawn if spot.node in one.members), spot)
            for spot in self.spots
        ]

    def _placed(self, spot: Spot, item: Item) -> Spot:
        where = self._scene.round_name(item, spot.node)
        if not where or spot.is_round or spot.leaf:
            return spot
        what, comma, more = spot.words.partition(", ")
        return spot._replace(words=f"{what} in {where}{comma}{more}")

    def of_leaves(self, nodes: Collection[int], told: int = 1, place: str = "") -> Spot | None:
        """What is said of the leaves among these nodes, as one: by the name that all have in their
        modules, and how many they are where that is not ``told`` beside it; at the line that is
        this ``place``."""
        about = [spot for spot in self.spots if spot.leaf and spot.node in nodes]
        spots = [spot for spot in about if place not in spot.silent]
        if not spots:
            return None
        first, *others = spots
        who, more = first.leaf, ""
        if {spot.words for spot in others} - {first.words}:
            more = f" and {len(others):,} more"
        elif others:
            is_alike = {spot.leaf for spot in others} == {who}
            times = "" if len(spots) == told else f" ×{len(spots):,}"
            who = f"{who}{times}" if is_alike else count(len(spots), "leaf")
        else:
            here = [visible(one.name) for one in self._scene.graph.leaves if one.node in nodes]
            if [*map(short, here)].count(who) > 1:
                # One of several layers.
                who = visible(
                    next(one.name for one in self._scene.graph.leaves if one.node == first.node)
                )
        return first._replace(words=f"{who}: {first.words}{more}")

    def _of_itself(self, item: Item) -> Spot | None:
        """What is said of a leaf, or of those that are drawn as one, which say it themselves."""
        known = (spot for spot in self.spots if spot.leaf and item.kind in ("leaf", "leaves"))
        return next((spot for spot in known if spot.node in item.members), None)

    def badge(self, item: Item) -> Severity | None:
        """The severity of the worst finding about a node in an item, or of the worst spot."""
        if not self._scene.report.findings:
            spot = self.of(item) or self._of_itself(item)
            is_lacking = item.kind == "repeat" and bool(self._scene.never_called(item))
            return spot.severity if spot else "information" if is_lacking else None
        badges = self._scene.blame.badges
        return worst(badges[node] for node in item.members if node in badges)


def _turn(scene: Scene) -> list[Spot]:
    """The one that makes NaN or infinity, or at which the gradient falls or grows at once."""
    if scene.blame.turn is None:
        return []
    line = scene.graph.nodes[scene.blame.turn.node].line
    return [Spot(*scene.blame.turn, -1 if line is None else line)]


def _not_called(scene: Scene) -> str:
    """The modules of a list that were not called before this look, though others of it were: with
    several calls in view, a later one may do so."""
    paths = [*map(visible, scene.graph.absent)]
    whose = "were not called: their" if len(paths) > 1 else "was not called: its"
    return f"{listed(paths)} {whose} parameters get no gradient" if paths else ""


def _incomplete(graph: Graph) -> Iterator[Spot]:
    """The lines, if known, that call modules of a list of which others were never called, with
    these."""
    lists: dict[str, list[str]] = {}
    for path in graph.absent:
        lists.setdefault(path.rpartition(".")[0], []).append(visible(path))
    found: dict[int, dict[str, list[str]]] = {}
    for call in graph.calls if lists else ():
        home = call.path.rpartition(".")[0]
        if home in lists:
            origin = -1 if call.origin is None else call.origin
            found.setdefault(origin, {})[home] = lists[home]
    for origin, here in found.items():
        # Of a list in every layer the same are told once.
        each = {tuple(map(short, paths)) for paths in here.values()}
        names = each.pop() if len(each) == 1 else [path for one in here.values() for path in one]
        yield Spot(-1, "information", f"not called: {listed(names, MOST_NAMED)}", origin)


def _falls(scene: Scene) -> Told:
    """The operation on the only way from the root to all leaves that leaves next to nothing."""
    if scene.blame.fall is None:
        return Told()
    node, before, after = scene.blame.fall
    sizes = f"{number(before)} to {number(after)}"
    words = f"‖g‖ falls from {sizes} at {scene.name_node(node)}, before any leaf"
    norms = [norm for norm, _ in _known(scene)]
    if len(norms) == len(scene.graph.leaves) > 1:
        words += f"; the {len(norms):,} leaves get {number(norms[0])} to {number(norms[-1])}"
    return Told(words, _turn(scene))


def _sizes(scene: Scene, is_some: bool) -> Iterator[Told]:
    """The smallest and the largest gradient of leaves that all get one; of those that get next to
    nothing how many there are.  ``is_some``: of others it is said that they get none."""
    leaves, known = scene.graph.leaves, _known(scene)
    if not known or len(leaves) < 2:
        return
    few = first_of_bulk([math.log10(norm) for norm, _ in known])
    summed = _cancelled_in_sums(scene, known[:few]) if few else 0.0
    if few and not summed:
        yield _next_to_nothing(scene, known, few)
    is_seen = len(leaves) <= FEW_LEAVES and len(scene.graph.nodes) <= AT_A_GLANCE
    if is_seen and not summed:
        return
    which = f"{'the other' if few or is_some else 'all'} {len(known) - few:,}"
    if summed:
        which = f"{len(known) - few:,} of {len(leaves):,}"
    ends = (f"{number(norm)} ({visible(leaf.name)})" for norm, leaf in (known[few], known[-1]))
    given = _given(scene)
    sizes = [known[few if summed else 0][0], known[-1][0], 1.0, *given]
    # What is said of one of several calls says nothing of the others.
    is_fine = (
        bool(given)
        and not (scene.each or is_some or summed or scene.report.checks)
        and min(sizes) > VANISHED * max(sizes)
    )
    yield Told(f"{which} leaves get ‖g‖ {' to '.join(ends)}", is_fine=is_fine)
    if summed:
        # As a bias of keys, which a softmax takes away: nothing need be wrong with it.
        who = _together([leaf for _, leaf in known[:few]], [leaf for _, leaf in known[few:]])
        most = f"at most {number(known[few - 1][0])}: up to {number(summed)} arrives there and"
        yield Told(f"the other{f' {few:,} get' if few > 1 else ' gets'} {most} cancels: {who}")


def _known(scene: Scene) -> list[tuple[float, Leaf]]:
    """The norm of what each leaf gets, the smallest first; nothing where one gets none."""
    leaves, found = scene.graph.leaves, scene.gradients
    infos = [found.leaf(place) for place in range(len(leaves))] if found else []
    if any(info.state != "finite" for info in infos):
        return []
    each = zip(infos, leaves, strict=True)
    known = [(float(info.norm), leaf) for info, leaf in each if info.norm]
    return sorted(known, key=lambda one: (one[0], visible(one[1].name)))


def _given(scene: Scene) -> list[float]:
    """The norm of what backward started with; nothing where that is not known or 0."""
    backward = scene.backward
    infos = [backward.gradients[entry] for entry in backward.seeds] if backward else []
    sizes = (float(info.norm or 0) for info in infos)
    return [size for size in sizes if size and math.isfinite(size)]


def _next_to_nothing(scene: Scene, known: Sequence[tuple[float, Leaf]], few: int) -> Told:
    """How many leaves get so little, which are the first ``few`` of these, with their norms."""
    little = [leaf for _, leaf in known[:few]]
    who = _together(little, [leaf for _, leaf in known[few:]])
    most = number(known[few - 1][0])
    words = f"{_get(scene, little)} next to nothing, ‖g‖ up to {most}: {who}"
    return Told(words, [_of_leaf(leaf, "next to nothing") for leaf in little])


def _together(leaves: Sequence[Leaf], others: Sequence[Leaf]) -> str:
    """The names of some leaves: of one place in each layer one for all, if none of the ``others``
    is meant by it."""
    names = [visible(leaf.name) for leaf in leaves]
    same = pattern(names)
    # All of a list, as those of each layer, or some of them.
    meant = re.compile(re.escape(same).replace(r"\*", r"[^.\[\]]*"))
    is_told = "…" not in same and not any(meant.fullmatch(visible(one.name)) for one in others)
    return same if is_told else listed(names)


def _cancelled_in_sums(scene: Scene, leaves: Sequence[tuple[float, Leaf]]) -> float:
    """The largest gradient that arrives where biases are added, if all these leaves, each with its
    norm, are biases that are sent no more than its rounding; else 0.

    A bias gets the sum over all rows, or over all places of an image. So a softmax over keys, or a
    normalisation, behind it takes away whatever it adds."""
    graph, found = scene.graph, scene.gradients
    meant = {leaf.node for _, leaf in leaves}
    sizes: list[float] = []
    for at, edge in enumerate(graph.edges if found else ()):
        if found is None or edge.target not in meant:
            continue
        node = graph.nodes[edge.source]
        # Who calls addmm may scale what is added; a Linear does not.
        kind = graph.calls[node.call].type if node.call is not None else ""
        is_plain = node.short_op != "Addmm" or kind == "Linear"
        arrived = float(found.backward.at(node.id).norm or 0)
        sent = float(found.backward.on_edge(at).norm or 0)
        is_bias = BIAS_SLOTS.get(node.short_op) == edge.slot and is_plain
        epsilon = EPSILON.get(found.backward.at(node.id).dtype, FLOAT32_EPSILON)
        if not is_bias or sent > min(ROUNDING * epsilon, MOST_ROUNDED) * arrived:
            return 0.0
        sizes.append(arrived)
    return max(sizes, default=0.0)


def _leaps(scene: Scene) -> Told:
    """The operation at which a gradient grows most, element by element."""
    found = scene.blame.leap
    if found is None:
        return Told()
    sizes = f"{number(found.before)} to {number(found.after)}"
    words = f"‖g‖ grows ×{times(found)}, {sizes}, at {scene.name_node(found.node)}"
    return Told(words, _turn(scene))


def _cancels(scene: Scene) -> Told:
    """Leaves whose gradients oppose each other, those that cancel most first."""
    found = scene.gradients
    if found is None:
        return Told()
    cancelled = ((found.cancelled(leaf.node), leaf) for leaf in scene.graph.leaves)
    shares = [(share, leaf) for share, leaf in cancelled if share is not None]
    shares.sort(key=lambda one: (-one[0], found.opposed(one[1].node), visible(one[1].name)))
    words = (
        f"{found.opposed(leaf.node):,} gradients cancel {cancelling(share)} at {visible(leaf.name)}"
        f"{_of_which(found, leaf)}"
        for share, leaf in shares
    )
    silent = _silent(found, {leaf.node for _, leaf in shares})
    spots = [
        _of_leaf(leaf, f"cancels {cancelling(share)}", silent[leaf.node]) for share, leaf in shares
    ]
    return Told(listed(words, MOST_CANCELLED), spots)


def _of_which(gradients: ViewGradients, leaf: Leaf) -> str:
    """``: ‖g‖ 2.283 and 1.376 leave 0.9077``, of two gradients that meet at a leaf; else ""."""
    parts = [float(one.norm) for one in gradients.contributions(leaf.node) if one.norm]
    total = gradients.backward.at(leaf.node).norm
    if len(parts) != 2 or total is None:
        return ""
    return f": ‖g‖ {' and '.join(map(number, sorted(parts, reverse=True)))} leave {number(total)}"


def _silent(gradients: ViewGradients, leaves: Collection[int]) -> dict[int, tuple[str, ...]]:
    """For each of these leaves the lines that take it and bring nothing but zeros to it, as the
    page and the listing call them: by the whole path, ``train.py:7``."""
    graph = gradients.graph
    brought: dict[int, dict[str, bool]] = {leaf: {} for leaf in leaves}
    for at, edge in enumerate(graph.edges if leaves else ()):
        line = graph.nodes[edge.source].line
        if edge.target in brought and line is not None:
            place, lines = graph.origins[line], brought[edge.target]
            name, is_any = f"{place.file}:{place.line}", bool(gradients.backward.on_edge(at).norm)
            lines[name] = lines.get(name, False) or is_any
    return {
        leaf: tuple(name for name, is_any in lines.items() if not is_any)
        for leaf, lines in brought.items()
    }


def _of_leaf(leaf: Leaf, words: str, silent: tuple[str, ...] = ()) -> Spot:
    name = short(visible(leaf.name))
    return Spot(leaf.node, "information", words, -1, leaf=name, silent=silent)


def alarm(scene: Scene) -> str:
    """A sentence on the first gradient that is not finite, or ""; findings say it better."""
    is_told = scene.report.findings or scene.options.verdict
    if scene.blame.first_bad is None or is_told or scene.backward is None:
        return ""
    node, made_here = scene.blame.first_bad
    what = "makes" if made_here else "receives"
    rows = in_rows(info.rows for info in scene.blame.sent_by(node)) if made_here else ""
    return f"{scene.name_node(node)} {what} the first NaN or infinity in backward order{rows}"


def _zeros(scene: Scene) -> Told:
    found = scene.gradients
    leaves = scene.graph.leaves
    apart = {visible(one.name) for one in leaves if found and found.cancelled(one.node)}
    altered = {*found.backward.altered} if found else set()
    hooks = {visible(one.name) for one in leaves if one.node in altered}
    # Of what cancels to nothing that is said, and of what a hook does.
    silent = [name for name in _leaves(scene, "zero") if name not in apart | hooks]
    if len(silent) == len(leaves):
        return Told("every leaf gets only zeros" if silent else "")
    # What cancels to 0 gets 0, too, but of other numbers.
    which = f"{len(silent):,} of {count(len(leaves), 'leaf')}: {listed(silent)}"
    return Told(f"only zeros reach {which}" if silent else "")


def _hooked(scene: Scene) -> Told:
    """Where hooks of the program change gradients; the tree and the picture show it there."""
    backward, graph = scene.backward, scene.graph
    altered = backward.altered if backward else ()
    # Older reports have no places.
    places = (backward.hooks if backward else ()) or [""] * len(altered)
    leaves = {leaf.node: visible(leaf.name) for leaf in graph.leaves}
    names, spots = list[str](), list[Spot]()
    for node, place in sorted(zip(altered, places, strict=True)):
        record = graph.nodes[node]
        at = f" ({place.rpartition('/')[2]})" if place else ""
        names.append((leaves.get(node) or visible(record.variable) or scene.called(record)) + at)
        if record.line is not None:
            spots.append(Spot(-1, "information", f"{HOOKED}{at}", record.line))
    if not names:
        return Told()
    if len(names) == 1 and backward:
        (node,) = altered
        sizes = _changed(graph, backward, node)
        return Told(f"a hook changes the gradient at {names[0]}{sizes}", spots)
    words = f"hooks change gradients at {len(names):,} nodes: {listed(names, MOST_NAMED)}"
    return Told(words, spots)


def _changed(graph: Graph, backward: BackwardPass, node: int) -> str:
    """``: ‖g‖ 2 to 0``, what a hook makes of the only gradient that arrives at a node; or ""."""
    ends = only_arrival(graph, backward, node)
    sizes = [number(one.norm) for one in ends or () if one.norm is not None]
    return f": ‖g‖ {' to '.join(sizes)}" if len(set(sizes)) == 2 else ""


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
    """What enters the modules of which most is made, or the rounds of each repeat, what these are
    called together, or "", and the nodes of each; whatever of them is open in the drawing."""
    folding = scene.options.folding
    if folding.is_chosen or folding.depth is not None:
        scene = Scene(scene.report, replace(scene.options, folding=Folding()))
    if alike := _alike(scene):
        parents = {path.rpartition(".")[0] for path in alike[1]}
        where = f"{visible(parent)}.*" if len(parents) == 1 and (parent := parents.pop()) else ""
        # What a Sequential calls by a number has its class in its name.
        where = where or ("" if all(map(str.isdecimal, alike[1])) else alike[0])
        yield _entering(scene, *alike), where, [*alike[1].values()]
    for frame in scene.view.templates:
        rounds = scene.rounds(frame)
        if frame.carried and len(rounds) >= FEWEST_BLOCKS:
            yield rounds, visible(frame.title), [one.entered for one in frame.rounds]
    for item in scene.view.items:
        if item.template is None and item.rounds:
            yield scene.rounds(item), "", [one.entered for one in item.rounds]


Change = Callable[[list[Round], Sequence[Sequence[int]]], Course | None]


def _first(scene: Scene, rows: Iterable[Row], change: Change) -> Told:
    """The first sentence on modules or rounds of which each gets its gradient by way of the one
    before, and which do not stand side by side, as heads."""
    for rounds, name, nodes in rows:
        found = change(rounds, nodes)
        if found is None or _is_apart(scene.graph, nodes):
            continue
        mark = _at_round(scene, found, nodes)
        place = scene.place(mark.origin) if mark.origin >= 0 else ""
        where = f" at {place}" if place else ""
        if name:
            where = f" ({place})" if place else ""
            where = where if found.names_rounds else f" in {name}{where}"
        return Told(f"{found.before}{where}{found.after}", [mark])
    return Told()


def _at_round(scene: Scene, change: Course, nodes: Sequence[Sequence[int]]) -> Spot:
    """The node at which the gradient enters a round, or the last before it leaves it, at the line
    that all rounds have in common: that of the outermost call in which only this round is."""
    graph = scene.graph
    made = [node for node in nodes[change.place] if graph.nodes[node].kind != "leaf"]
    here = max(made) if change.is_behind and made else min(nodes[change.place])
    others = {call for node in nodes[change.place - 1][:1] for call in _calls(graph, node)}
    own = [call for call in _calls(graph, here) if call not in others]
    at = graph.calls[own[-1]].origin if own else graph.nodes[here].line
    return Spot(here, change.severity, change.words, -1 if at is None else at, is_round=True)


def _calls(graph: Graph, node: int) -> list[int]:
    """The module calls in which a node was made, the innermost first."""
    return [*around(graph.calls, graph.nodes[node].call)]


def repeats(scene: Scene) -> Iterator[tuple[str, list[Round]]]:
    """The class of which most of the graph is made, and other repeats that are drawn once, with the
    gradient that enters each of their modules; those that are too few to compare are left out."""
    alike = _alike(scene)
    if alike is not None:
        kind, modules = alike
        every = sum(visible(call.type) == kind for call in scene.graph.calls)
        parents = ", ".join(dict.fromkeys(path.rpartition(".")[0] for path in modules))
        where = f" in {visible(parents)}" if every > len(modules) and parents else ""
        if rounds := _entering(scene, kind, modules):
            # Of a long path the end is enough, where it tells them apart.
            told = [one._replace(name=short(one.name)) for one in rounds]
            is_clear = len({one.name for one in told}) == len(told)
            yield f"{kind}{where}", told if is_clear and "," not in parents else rounds
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


def _entering(scene: Scene, kind: str, modules: dict[str, list[int]]) -> list[Round]:
    """The gradient that enters each of these modules; those that a Sequential calls by a number are
    called by their ``kind`` as well."""
    found = scene.gradients
    if found is None:
        return []
    return [
        Round(with_class(kind, path), found.crossing({*nodes})) for path, nodes in modules.items()
    ]


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
