"""The view as pictures and trees draw it, which are looked at as a whole: a link leads straight to
a parameter that a module transposes, what would be taller than can be looked at stays closed, and
in a picture a way down and up again has two sides.

Must not know of gradients or of any output format.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise

import msgspec

from gradscope.model.report import TURNS, Graph
from gradscope.simplify.view import Item, Link, TwoSides, View

VIEWS = TURNS | {"View", "UnsafeView", "ReshapeAlias", "Alias", "Squeeze", "Unsqueeze", "Clone"}
"""Operations whose gradient has the same elements as what arrives, in any shape."""

FEWEST_NODES = 60
"""Of a smaller graph every view is seen by itself."""

MOST_ROWS = 18
"""Boxes below one another that can be taken in at once."""

FEWEST_ACROSS, MANY_INTO = 2, 4
"""So many links inside one another make two sides, and so many lead to what stands below both."""


def height(view: View) -> int:
    """How many boxes of a picture stand below one another, but for leaves."""
    return len(_longest(view, set()))


def longest_way(view: View) -> frozenset[int]:
    """The links of the longest way from a root, with one to a leaf at its end."""
    way = _longest(view, set())
    outgoing = view.outgoing()
    steps = [*pairwise(way), *((one, None) for one in way[-1:])]
    found = (
        next((at for at in outgoing[item] if after in (None, view.links[at].target)), None)
        for item, after in steps
    )
    return frozenset(at for at in found if at is not None)


def rows_of_tree(view: View) -> int:
    """In how many rows a tree shows a view: links, sums, roots, and what is drawn once."""
    sums = sum(len(links) > 1 for links in view.incoming())
    return len(view.links) + sums + len(view.roots) + len(view.templates)


def straight_to_leaves(view: View, graph: Graph, told: frozenset[int]) -> View:
    """The view without the operations that only turn a leaf for the one call they were made in, as
    ``Linear`` turns its weight: what arrives there is drawn as arriving at the leaf.  Nodes of
    which something is ``told`` stay."""
    ends = _turned(view, graph, told)
    turned = tuple(node for item in ends for node in view.items[item].members)
    drawn = _drawn_as(view, [ends.get(item.id, item.id) for item in view.items])
    return msgspec.structs.replace(drawn, on_links=turned)


def _drawn_as(view: View, stands: list[int]) -> View:
    """The view in which another item, or it itself, stands for each item."""
    kept = [item for item in view.items if stands[item.id] == item.id]
    number = {item.id: at for at, item in enumerate(kept)}
    place = [number[item] for item in stands]
    links = (Link(place[one.source], place[one.target], one.edges) for one in view.links)
    return msgspec.structs.replace(
        view,
        items=tuple(msgspec.structs.replace(item, id=number[item.id]) for item in kept),
        links=tuple(link for link in links if link.source != link.target),
        roots=tuple(place[root] for root in view.roots),
    )


def _turned(view: View, graph: Graph, told: frozenset[int]) -> dict[int, int]:
    """For each operation that only turns a leaf that leaf, as items."""
    incoming, outgoing = view.incoming(), view.outgoing()
    many = Counter(edge.target for edge in graph.edges)
    ends: dict[int, int] = {}
    # From the leaves up, for what is turned twice.
    for item in reversed(view.items):
        node = graph.nodes[item.members[0]]
        if item.kind != "op" or node.short_op not in TURNS or item.id in view.roots:
            continue
        is_for_one = all(many[member] == 1 for member in item.members)
        if not is_for_one or not told.isdisjoint(item.members):
            continue
        targets = [view.links[link].target for link in outgoing[item.id]]
        users = [view.items[view.links[link].source] for link in incoming[item.id]]
        leaf = ends.get(targets[0], targets[0]) if len(targets) == 1 else item.id
        places = {graph.nodes[user.members[0]].origin for user in users if not user.folded}
        if view.items[leaf].kind == "leaf" and node.origin in places - {None}:
            ends[item.id] = leaf
    return ends


def views_as_one(view: View, graph: Graph, told: frozenset[int]) -> View:
    """The view with views of one another, in which no number of a gradient changes, as one item.
    Nodes of which something is ``told`` stay."""
    incoming, outgoing = view.incoming(), view.outgoing()

    def is_view(item: Item) -> bool:
        node = graph.nodes[item.members[0]]
        is_alone = len(incoming[item.id]) == 1 and item.id not in view.roots
        is_plain = item.kind == "op" and item.template is None and node.short_op in VIEWS
        return is_alone and is_plain and told.isdisjoint(item.members)

    chain: list[int] = []  # for each item the first of its chain
    held: dict[int, list[int]] = {}
    for item in view.items:
        above = view.links[incoming[item.id][0]].source if len(incoming[item.id]) == 1 else item.id
        goes_on = is_view(item) and is_view(view.items[above]) and len(outgoing[above]) == 1
        chain.append(chain[above] if goes_on else item.id)
        held.setdefault(chain[-1], []).append(item.id)
    if len(graph.nodes) < FEWEST_NODES or len(held) == len(view.items):
        return view
    items = list(view.items)
    for first, members in held.items():
        if len(members) > 1:
            every = Counter(view.items[one].title for one in members)
            title = " · ".join(f"{op} ×{many}" if many > 1 else op for op, many in every.items())
            nodes = tuple(node for one in members for node in view.items[one].members)
            whole = msgspec.structs.replace(items[first], kind="views", title=title, members=nodes)
            items[first] = whole
    # A chain stands where its first item stood, above all that it leads to.
    return _drawn_as(msgspec.structs.replace(view, items=tuple(items)), chain)


def with_sides(view: View) -> View:
    """With two sides where links around the middle of the longest way lie inside one another, and
    no other link leads from one to the other (as ``folded`` in ``web/src/lanes.js``)."""
    many = {item for item, links in enumerate(view.incoming()) if len(links) >= MANY_INTO}
    below = _onwards(view, many, set())
    way = _longest(view, below)
    place = {item: at for at, item in enumerate(way)}
    around = sorted(
        (place[link.source], -place[link.target], number)
        for number, link in enumerate(view.links)
        if place.get(link.target, 0) > place.get(link.source, len(way)) + 1
    )
    changes = [0] * (len(way) + 1)
    for first, last, _ in around:
        changes[first] += 1
        changes[-last] -= 1
    over = [*accumulate(changes)]
    middle = over.index(max(over))
    most = [one for one in around if one[0] <= middle < -one[1]]
    is_inside = all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(most))
    if len(most) < FEWEST_ACROSS or not is_inside:
        return view
    middle = (most[-1][0] - most[-1][1]) // 2
    up = _onwards(view, {way[middle + 1]}, below)
    crossing = [
        number
        for number, link in enumerate(view.links)
        if link.target in up and link.source not in up
    ]
    sides = {end for n in crossing for end in (view.links[n].source, view.links[n].target)} | up
    if len(crossing) != len(most) + 1 or any(view.items[one].template is not None for one in sides):
        return view
    # What is below the last pair stands between the sides, and else in a pair, too.
    across = tuple(n for *_, n in most) if middle + 1 == -most[-1][1] else tuple(crossing)
    return msgspec.structs.replace(view, sides=TwoSides(frozenset(up), across))


def _onwards(view: View, items: set[int], without: set[int]) -> set[int]:
    """These items and all that come after them, up to those ``without`` which they are."""
    found = set(items)
    for link in view.links:
        if link.source in found and link.target not in without:
            found.add(link.target)
    return found


def _longest(view: View, below: set[int]) -> list[int]:
    """The items of the longest way from a root, but for leaves and what is ``below``."""
    length, before = [0] * len(view.items), [-1] * len(view.items)
    for link in view.links:
        counts = view.items[link.target].kind != "leaf" and link.target not in below
        if counts and length[link.source] >= length[link.target]:
            length[link.target], before[link.target] = length[link.source] + 1, link.source
    way = [max(range(len(length)), key=length.__getitem__)] if length else []
    while way and before[way[-1]] >= 0:
        way.append(before[way[-1]])
    return way[::-1]
