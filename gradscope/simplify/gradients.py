"""The gradients of a view's items and links, read from their members; and those of a whole graph
along the order of backward, in a few rows; and where gradients meet: how much of what arrives at a
node came through a skip, and how much of it cancels.

What is drawn as one thing may stand for many: its gradient is that of its members taken together,
as if they were one long vector. The rows have the medians of the page's river
(``web/src/profile.js``). Must not know how numbers are written or drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import nlargest
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from gradscope.model.invariants import differences
from gradscope.model.plain import Number, number
from gradscope.model.report import BackwardPass, Edge, GradientInfo, Graph, Node, State
from gradscope.simplify.view import Item, Link, View, edges_into, edges_out

if TYPE_CHECKING:
    from gradscope.simplify.hierarchy import Group, Hierarchy

FALL = 1e-3
"""What one operation leaves of a gradient, element by element, is worth a word from here on."""

LOUDEST: tuple[State, ...] = ("non-finite", "finite", "zero", "none", "not reached")


OPPOSING = 0.5
"""Contributions oppose each other where their sum is less than this share of what it would be at
right angles."""

LONGEST_BRANCH = 5_000
"""Nodes of what is added to a skip, within which it is looked for."""

MOST_PARTS = 64
"""A sum of more than these is no skip beside branches, but something that is used again and
again."""


class Sums:
    """The sums of gradients in one backward pass."""

    def __init__(self, graph: Graph, backward: BackwardPass) -> None:
        self.graph = graph
        self.backward = backward

    def shares(self) -> dict[str, dict[str, float]]:
        """Wherever gradients meet, by ``node`` or ``node.output``: which share of them came through
        a skip, and which cancelled."""
        skip, cancelled = {}, {}
        for (node, output), arrived in self._arrived.items():
            if len(arrived) > 1:
                place = f"{node}.{output}" if output else f"{node}"
                skip[place] = self.residual(node, output)
                cancelled[place] = self.cancelled(node, output)
        return {
            name: {at: float(f"{one:.6g}") for at, one in found.items() if one is not None}
            for name, found in (("skip", skip), ("cancelled", cancelled))
        }

    def contributions(self, node: int, output: int = 0) -> list[GradientInfo]:
        """The gradients of which an upstream gradient is the sum, by edge, then by seed."""
        return [self.backward.gradients[entry] for entry in self._arrived.get((node, output), ())]

    def opposed(self, node: int, output: int = 0) -> int:
        """How many gradients that are not zero meet there."""
        return sum(bool(_size(part)) for part in self.contributions(node, output))

    def cancelled(self, node: int, output: int = 0) -> float | None:
        """How much of what arrives there cancels: 1 − ‖Σ gᵢ‖ / Σ ‖gᵢ‖ of its parts gᵢ, where these
        oppose each other; None where they do not, or where it is not known exactly.

        Parts that only point in other directions make a sum that is shorter, too: at right angles
        it is √(Σ ‖gᵢ‖²).  They oppose each other where the sum is not half of that."""
        if node in self._altered:
            return None
        parts = self.contributions(node, output)
        if len(parts) < 2:
            return None
        norms = [_size(part) for part in (*parts, self.backward.at(node, output))]
        if None in norms:
            return None
        *sizes, total = (size or 0.0 for size in norms)
        if not math.hypot(*sizes) or total >= OPPOSING * math.hypot(*sizes):
            return None
        return 1 - total / math.fsum(sizes)

    def residual(self, node: int, output: int = 0) -> float | None:
        """How much of what arrives there came through a skip: its share of Σ ‖gᵢ‖, where one part
        comes straight from an addition and all others through what was added; else None."""
        known = ((self.graph.edges[number], number) for number in self._edges_into[node])
        edges = {edge.source: number for edge, number in known if edge.output == output}
        start = min((s for s in edges if self.graph.nodes[s].short_op == "Add"), default=None)
        if start is None or not 1 < len(edges) <= MOST_PARTS or node in self._altered:
            return None
        tensors = self.graph.nodes[start].output(0), self.graph.nodes[node].output(output)
        # As of a bias that each round of a loop adds: what is broadcast is no way around anything.
        is_smaller = len({tensor.shape for tensor in tensors if tensor is not None}) > 1
        ways = (self._goes_through(start, source) for source in edges if source != start)
        if is_smaller or not all(ways):
            return None
        sizes = {s: _size(self.backward.on_edge(number)) for s, number in edges.items()}
        total = math.fsum(size or 0.0 for size in sizes.values())
        return None if None in sizes.values() or not total else (sizes[start] or 0.0) / total

    def _goes_through(self, start: int, node: int) -> bool:
        """Whether a gradient comes to a node from another; not where the way is too long."""
        waiting, seen = [node], {node}
        for one in waiting:
            above = {self.graph.edges[number].source for number in self._edges_into[one]}
            if start in above or len(waiting) > LONGEST_BRANCH:
                return start in above
            # Who is above has a lower number, so nothing beyond the start leads back to it.
            waiting += sorted(other for other in above - seen if other > start)
            seen |= above
        return False

    @cached_property
    def _altered(self) -> set[int]:
        return set(self.backward.altered)

    @cached_property
    def replaced(self) -> set[tuple[int, int]]:
        """Where a hook of the program replaced what arrived: (node, output)."""
        if not self.backward.altered:
            return set()
        found = {*differences(self.graph, self.backward)}
        known = {node for node, _ in found}
        # A union of two graphs has edges that brought nothing to its sums.
        return found | {(node, 0) for node in self.backward.altered if node not in known}

    @cached_property
    def _edges_into(self) -> list[list[int]]:
        return edges_into(self.graph)

    @cached_property
    def _arrived(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for edge, entry in zip(self.graph.edges, self.backward.edges, strict=True):
            found.setdefault((edge.target, edge.output), []).append(entry)
        for root, entry in zip(self.graph.roots, self.backward.seeds, strict=True):
            found.setdefault((root.node, root.output), []).append(entry)
        return found


def _size(info: GradientInfo) -> float | None:
    """The norm of a gradient that is known and finite."""
    if info.state == "zero":
        return 0.0
    return None if info.state != "finite" or info.norm is None else float(info.norm)


class ViewGradients(Sums):
    """One backward pass, seen through one view of its graph."""

    def __init__(self, graph: Graph, backward: BackwardPass, view: View) -> None:
        super().__init__(graph, backward)
        self.view = view
        # With each item, so that no other gets its number.
        self._rounds: dict[int, tuple[Item, list[GradientInfo]]] = {}
        self._arrivals: dict[int, tuple[Item, dict[tuple[int, int], int]]] = {}
        self._leaf_positions = {leaf.node: index for index, leaf in enumerate(graph.leaves)}

    def link(self, link: Link) -> GradientInfo:
        """What flows along a link: its edge's gradient, or that of its edges together."""
        return combine(self.parts(link.edges))

    def parts(self, edges: Iterable[int]) -> list[GradientInfo]:
        """What edges bring, one by one; where they are all that comes to a place their sum."""
        found: list[GradientInfo] = []
        for (node, output), some in self._by_place(edges).items():
            is_sum = self._is_all((node, output), some)
            found += (
                [self.backward.at(node, output)] if is_sum else map(self.backward.on_edge, some)
            )
        return found

    def adds_up(self, link: Link) -> bool:
        """Whether edges of a link are all that comes to a place; of equal rounds in the first."""
        (first, *_) = self._edges_by_rounds(link)
        places = self._by_place(first)
        return len(places) == 1 and all(self._is_all(*one) for one in places.items())

    def largest_of(self, link: Link) -> GradientInfo | None:
        """Of what several edges of a link bring to several places the largest; None where they add
        up, one is not finite, or they are of many rounds that are drawn once.  Their norms do not
        add up to that of what they come to."""
        if len(self._edges_by_rounds(link)) > 1:
            return None
        known = self.parts(link.edges)
        if len(known) < 2 or {info.state for info in known} - {"finite", "zero"}:
            return None
        return max(known, key=lambda info: float(info.norm or 0))

    def _by_place(self, edges: Iterable[int]) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for edge in edges:
            end = self.graph.edges[edge]
            found.setdefault((end.target, end.output), []).append(edge)
        return found

    def _is_all(self, place: tuple[int, int], edges: Sequence[int]) -> bool:
        """Whether several edges to an output of a node are all that comes there."""
        return len(edges) > 1 and len(self._arrived[place]) == len(edges)

    def seed(self, root: int) -> GradientInfo:
        """What was given for a root."""
        return self.backward.gradients[self.backward.seeds[root]]

    def arrivals(self, item: Item) -> dict[tuple[int, int], int]:
        """Where gradients enter an item: (node, output), and how many edges and seeds lead
        there."""
        if id(item) not in self._arrivals:
            self._arrivals[id(item)] = item, self.entered({*item.members})
        return self._arrivals[id(item)][1]

    def entering(self, item: Item) -> GradientInfo:
        """The gradient that enters an item: what comes from outside to all places where edges lead
        in; of a round that is called by a module what enters that.  Of what is drawn once for many
        rounds that of the round in the middle."""
        if item.template is not None:
            return middle(self.rounds(item))
        if item.kind == "round" and item.called:
            return self.crossing(set(item.called))
        return combine(self.entering_parts(item))

    def entering_parts(self, item: Item) -> list[GradientInfo]:
        """What enters an item, place by place: the sum of all that comes there, or each gradient by
        itself where others from inside come there as well."""
        inside = set(item.members) if item.folded else set()
        return [part for place in self.arrivals(item) for part in self._outside(place, inside)]

    def rounds(self, item: Item) -> list[GradientInfo]:
        """The gradient that enters each round of a repeat, in the order of its rounds; of a round
        that is called by a module what enters that."""
        # A verdict asks for them, its head does, and the row.
        if id(item) not in self._rounds:
            found = [self.crossing(set(one.entered)) for one in item.rounds]
            self._rounds[id(item)] = item, found
        return self._rounds[id(item)][1]

    def link_by_rounds(self, link: Link) -> list[GradientInfo]:
        """What flows along a link inside a template, in the order of its rounds."""
        return [combine(self.parts(edges)) for edges in self._edges_by_rounds(link)]

    def _edges_by_rounds(self, link: Link) -> list[list[int]]:
        """The edges of a link inside a template, in the order of its rounds; of any other all."""
        source, target = (self.view.items[end] for end in (link.source, link.target))
        if source.template is None or source.template != target.template:
            return [[*link.edges]]
        round_of, found = source.round_of(), dict[int, list[int]]()
        for edge in link.edges:
            found.setdefault(round_of[self.graph.edges[edge].source], []).append(edge)
        return [found[place] for place in sorted(found)]

    def crossing(self, nodes: set[int]) -> GradientInfo:
        """What enters these nodes from others, or from outside."""
        return combine(
            [part for place in self.entered(nodes) for part in self._outside(place, nodes)]
        )

    def leaving(self, nodes: set[int]) -> GradientInfo | None:
        """What goes from these nodes to others that are no leaves; None where nothing does, or
        where others send there, too."""
        out = self._by_place(
            at
            for at, edge in enumerate(self.graph.edges)
            if edge.source in nodes and edge.target not in nodes
            if self.graph.nodes[edge.target].kind != "leaf"
        )
        if any(len(self._arrived[place]) != len(edges) for place, edges in out.items()):
            return None
        return combine([self.backward.at(*place) for place in out]) if out else None

    def _outside(self, place: tuple[int, int], nodes: set[int]) -> list[GradientInfo]:
        """What comes to an output of a node, without what others of these nodes send there."""
        node, output = place
        edges = self.graph.edges
        into = [edge for edge in self._edges_into[node] if edges[edge].output == output]
        outside = [edge for edge in into if edges[edge].source not in nodes]
        if len(outside) == len(into):
            return [self.backward.at(node, output)]
        roots = enumerate(self.graph.roots)
        given = [self.seed(at) for at, root in roots if (root.node, root.output) == place]
        return [*map(self.backward.on_edge, outside), *given]

    def apart(self, item: Item) -> int:
        """Of how many gradients a closed group has the norm as if they were one vector; 0 where it
        is that of their sum."""
        if not item.folded or item.template is not None or item.kind == "leaves":
            return 0
        many = len(self.entering_parts(item))
        return many if many > 1 else 0

    def entered(self, nodes: set[int]) -> dict[tuple[int, int], int]:
        """Where gradients enter these nodes from others, or from outside: (node, output), and how
        many edges and seeds lead there."""
        into = (self.graph.edges[at] for node in sorted(nodes) for at in self._edges_into[node])
        places = [(one.target, one.output) for one in into if one.source not in nodes]
        places += [(one.node, one.output) for one in self.graph.roots if one.node in nodes]
        found = dict.fromkeys(places, 0)
        for place in places:
            found[place] += 1
        return found

    def parameters(self, nodes: Iterable[int]) -> GradientInfo | None:
        """The gradients of the leaves among some nodes, or None if there are none."""
        known = self._leaf_positions
        positions = [known[node] for node in nodes if node in known]
        return combine([self.leaf(position) for position in positions]) if positions else None

    def leaf(self, position: int) -> GradientInfo:
        """What arrived in total for ``graph.leaves[position]``."""
        return self.backward.brought(position)


def middle(parts: list[GradientInfo]) -> GradientInfo:
    """The one in the middle by size; what is not finite is never passed over."""
    ordered = sorted(parts, key=lambda info: float(info.norm or 0))
    loud = [info for info in parts if info.state == "non-finite"]
    return (loud or ordered[len(ordered) // 2 :] or [GradientInfo("not reached")])[0]


def combine(parts: list[GradientInfo]) -> GradientInfo:
    """Several gradients as if they were one long vector; a single one stays itself.

    The state is the one that matters most: any NaN makes the whole non-finite, any number makes it
    finite."""
    if len(parts) == 1:
        return parts[0]
    states = {part.state for part in parts}
    state: State = next((state for state in LOUDEST if state in states), "not reached")
    return GradientInfo(
        state=state,
        norm=_together(part.norm for part in parts)
        if state not in ("none", "not reached")
        else None,
        absmax=None,
        nan=sum(part.nan for part in parts),
        inf=sum(part.inf for part in parts),
        dtype=parts[0].dtype if parts else "float32",
    )


def _together(norms: Iterable[Number | None]) -> Number | None:
    known = [float(norm) for norm in norms if norm is not None]
    if not known:
        return None
    # hypot scales before it squares: norms near the float limits neither overflow nor vanish.
    return number(math.nan if any(map(math.isnan, known)) else math.hypot(*known))


LOW, HIGH = 0.05, 0.95
"""Shares of the norms of a row between which its stream flows."""

SMALL = 60
"""Nodes of a graph that is seen as a whole without a river."""


class ProfileRow(NamedTuple):
    """What enters some nodes that follow one another in backward order.

    ``low``, ``middle``, ``high``: norms at operations, None where none is known; ``leaf``: the
    median of those at leaves; and how many nodes are in which state."""

    low: float | None = None
    middle: float | None = None
    high: float | None = None
    leaf: float | None = None
    bad: int = 0
    zero: int = 0
    finite: int = 0

    @property
    def info(self) -> GradientInfo:
        """The row as one gradient; what is not finite is never passed over."""
        if self.bad:
            return GradientInfo("non-finite")
        if self.middle is not None:
            return GradientInfo("finite", norm=self.middle)
        return GradientInfo("zero" if self.zero else "not reached")


def profile_of(graph: Graph, backward: BackwardPass, most: int) -> list[ProfileRow]:
    """At most ``most`` rows, from the loss down."""
    size = len(graph.nodes)
    count = max(min(most, size), 1)
    # A node is in the row in which its middle lies.
    ends = [max(math.ceil(row * size / count - 0.5), 0) for row in range(count + 1)]
    rows: list[ProfileRow] = []
    for first, behind in pairwise(ends):
        row = _row(graph, backward, range(first, behind))
        if rows and all(graph.nodes[node].kind == "leaf" for node in range(first, behind)):
            # Past leaves the stream flows on as it was: a gap would say that nothing came.
            row = row._replace(low=rows[-1].low, middle=rows[-1].middle, high=rows[-1].high)
        rows.append(row)
    return rows


MOST_LEAPS = 20
"""Operations that are asked whether what they make is most of what it meets with."""

MOST = 4
"""Times as much as all others is most of what meets somewhere: what a normalisation makes of a
small gradient, beside a skip as large, changes little."""

MOST_STEPS = 100
"""Operations that are gone on to that place."""


class Fall(NamedTuple):
    """An operation that leaves next to nothing, on the only way from a root to all leaves, or makes
    much of it: the norm of what arrives there, and of what it sends on."""

    node: int
    before: float
    after: float


def fall(graph: Graph, backward: BackwardPass) -> Fall | None:
    """The first such operation; None where there are several roots or none is one."""
    if len(graph.roots) != 1:
        return None
    below = edges_out(graph)
    edges = below[graph.roots[0].node]
    while len(edges) == 1:
        edge = graph.edges[edges[0]]
        came, left = backward.at(edge.source, 0), backward.on_edge(edges[0])
        norms = [float(one.norm or 0) for one in (came, left) if one.state == "finite"]
        if _is_each(graph, edge) and len(norms) == 2 and 0 < norms[1] < FALL * norms[0]:
            return Fall(edge.source, *norms)
        edges = below[edge.target]
    return None


def _is_each(graph: Graph, edge: Edge) -> bool:
    """Whether each element goes on as one: a mean leaves little to each of many, and a weight is
    meant."""
    ends = graph.nodes[edge.source].output(0), graph.nodes[edge.target].output(edge.output)
    shapes = {None if tensor is None else tensor.shape for tensor in ends}
    return len(shapes) == 1 and not shapes <= {None, ()}


def leap(graph: Graph, backward: BackwardPass, least: float) -> Fall | None:
    """The operation that makes the most of what arrives, at least ``least`` times as much in the
    same shape, where that is no small gradient of the graph and no small part of what it meets
    with next; None where none does."""
    sent = [backward.on_edge(at) for at in range(len(graph.edges))]
    sizes = [0.0 if info.state != "finite" else float(info.norm or 0) for info in sent]
    typical = sorted(sizes)[len(sizes) // 2] if sizes else 0.0
    found, altered = list[tuple[float, int, Fall]](), {*backward.altered}
    for at, (edge, after) in enumerate(zip(graph.edges, sizes, strict=True)):
        is_leaf = graph.nodes[edge.target].kind == "leaf"
        if after < typical or is_leaf or edge.source in altered or not _is_each(graph, edge):
            continue
        infos = (backward.gradients[entry] for entry in backward.upstream[edge.source])
        came = [_size(info) for info in infos if info.state not in ("none", "not reached")]
        before = math.nan if None in came else math.hypot(*(size or 0.0 for size in came))
        if before and after >= least * before:
            found.append((after / before, at, Fall(edge.source, before, after)))
    largest = nlargest(MOST_LEAPS, found)
    into, out = (edges_into(graph), edges_out(graph)) if largest else ([], [])
    kept = (fall for _, at, fall in largest if _is_most(graph, sizes, at, into, out))
    return next(kept, None)


def _is_most(
    graph: Graph, sizes: Sequence[float], at: int, into: list[list[int]], out: list[list[int]]
) -> bool:
    """Whether what an edge brings is, where it meets with others, most of what meets there."""
    for _ in range(MOST_STEPS):
        node, output = graph.edges[at].target, graph.edges[at].output
        if not out[node]:  # a leaf has got there
            break
        others = [sizes[one] for one in into[node] if graph.edges[one].output == output]
        if len(others) > 1:
            return (MOST + 1) * sizes[at] >= MOST * sum(others)
        at = max(out[node], key=sizes.__getitem__)
    return True


def zeros(graph: Graph, backward: BackwardPass) -> list[Node]:
    """The nodes that exactly 0 enters."""
    return [one for one in graph.nodes if arriving(backward, one.id).state == "zero"]


def _row(graph: Graph, backward: BackwardPass, nodes: range) -> ProfileRow:
    found: dict[bool, list[float]] = {True: [], False: []}
    counts = {"non-finite": 0, "zero": 0, "finite": 0}
    for node in nodes:
        info = arriving(backward, node)
        known = info.state != "finite" or info.norm is not None
        if info.state in counts and known:
            counts[info.state] += 1
        if info.state == "finite" and known:
            found[graph.nodes[node].kind == "leaf"].append(float(info.norm or 0))
    low, middle, high = (_at(found[False], share) for share in (LOW, 0.5, HIGH))
    return ProfileRow(low, middle, high, _at(found[True], 0.5), *counts.values())


def arriving(backward: BackwardPass, node: int) -> GradientInfo:
    """What enters a node; of an operation with several outputs the one that says most."""
    infos = [backward.gradients[entry] for entry in backward.upstream[node]]
    silent = GradientInfo("not reached")
    return max(
        infos, key=lambda info: (-LOUDEST.index(info.state), float(info.norm or 0)), default=silent
    )


def _at(norms: list[float], share: float) -> float | None:
    return sorted(norms)[math.floor(share * (len(norms) - 1) + 0.5)] if norms else None


def brackets(hierarchy: Hierarchy, least: float) -> list[tuple[int, int, Group]]:
    """Groups that divide the graph, with their first node and the one behind their last: always the
    largest are divided further, those of one kind together, into ``least`` nodes on average."""
    groups, sizes = hierarchy.groups, hierarchy.sizes
    held = [hierarchy.flat(group.id) for group in groups]  # parts are ours
    cut = held[0]
    while whole := [one for one in cut if held[one]]:
        largest = groups[max(whole, key=sizes.__getitem__)]
        kind = (largest.parent, largest.type)
        alike = [one for one in whole if (groups[one].parent, groups[one].type) == kind]
        parts = [part for one in alike for part in held[one]]
        if sum(sizes[one] for one in alike) < least * len(parts):
            break
        cut = [one for one in cut if one not in alike] + parts
    spans = ((hierarchy.inside(one), groups[one]) for one in cut)
    found = [(nodes[0], nodes[-1] + 1, group) for nodes, group in spans if nodes]
    return sorted(found, key=lambda one: one[:2])
