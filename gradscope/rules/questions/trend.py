"""How the size of the gradient changes along depth, at the operations that repeat.

A group are the nodes of one expression in a loop or a repeated block, or of one op in one function.
Its levels are how many of its nodes lie on the way from the root.  Knows nothing of messages.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradscope.rules.facts import Facts, elements, short
from gradscope.rules.questions.ops import VIEWS

FEWEST_LEVELS = 5
STEADY = 0.75
"""Share of levels on which a trend must go on."""

SINGLE = 0.6
"""Share of a trend (of its logarithm) that one level may have: more is no matter of depth."""

VANISHED = 1e-5
"""The gradient at the far end by that at the near end, below which it has vanished."""


@dataclass(frozen=True)
class Trend:
    """Norms of the gradient level by level, from the root down, at ``nodes``; ``gain`` is what one
    of these nodes multiplies it by."""

    nodes: tuple[int, ...]
    norms: tuple[float, ...]
    gain: float

    @property
    def ratio(self) -> float:
        """The gradient at the last level by that at the first."""
        return self.norms[-1] / self.norms[0]

    @property
    def a_level(self) -> float:
        """The factor of one level."""
        return float(self.ratio ** (1 / (len(self.norms) - 1)))


def trends(facts: Facts) -> list[Trend]:
    """All groups whose gradient shrinks or grows steadily by orders of magnitude."""
    found = [trend for group in _by_expression(facts) for trend in _trend(facts, group)]
    if found:
        return found
    return [trend for group in _by_function(facts) for trend in _trend(facts, group)]


def _norm(facts: Facts, node: int) -> float | None:
    """The size of what a node received; None where it is nothing, zero or not finite."""
    received = [info for info in facts.received(node) if info.state == "finite"]
    norms = [float(info.norm) for info in received if info.norm is not None]
    norm = math.hypot(*norms)
    return norm if norm > 0 and math.isfinite(norm) else None


def _operations(facts: Facts) -> Iterable[int]:
    for node in facts.graph.nodes:
        if node.kind != "leaf" and facts.op(node.id) not in VIEWS and _norm(facts, node.id):
            yield node.id


def _by_expression(facts: Facts) -> Iterable[list[int]]:
    groups: dict[object, list[int]] = {}
    for node in _operations(facts):
        record = facts.graph.nodes[node]
        if record.origin is not None:
            groups.setdefault((record.origin, record.op), []).append(node)
    return groups.values()


def _by_function(facts: Facts) -> Iterable[list[int]]:
    """For layers that are written out one below the other."""
    groups: dict[object, list[int]] = {}
    for node in _operations(facts):
        record = facts.graph.nodes[node]
        origin = facts.graph.origin_of(record)
        if origin is not None:
            groups.setdefault((origin.file, origin.function, record.op), []).append(node)
    return groups.values()


def _trend(facts: Facts, group: list[int]) -> Iterable[Trend]:
    if len(group) < FEWEST_LEVELS:
        return
    norms = [_norm(facts, node) or 0.0 for node in group]
    if max(norms) < 1e3 * min(norms):
        return  # spares the walk below for almost every group
    levels = _levels(facts, group)
    if len(levels) < FEWEST_LEVELS:
        return
    sizes = [math.hypot(*(_norm(facts, node) or 0.0 for node in nodes)) for nodes in levels]
    growing = sum(after > before for before, after in itertools.pairwise(sizes))
    share = growing / (len(sizes) - 1)
    grows = sizes[-1] > sizes[0]
    steps = [abs(math.log(after / before)) for before, after in itertools.pairwise(sizes)]
    if max(steps) > SINGLE * abs(math.log(sizes[-1] / sizes[0])):
        return
    if (grows and share >= STEADY) or (not grows and share <= 1 - STEADY):
        yield Trend(tuple(group), tuple(sizes), _gain(facts, group))


def _levels(facts: Facts, group: list[int]) -> list[list[int]]:
    """The nodes of a group by how many of them lie on the longest way from the root."""
    members = set(group)
    depth = [0] * len(facts.graph.nodes)
    levels: list[list[int]] = []
    for node in range(min(group), max(group) + 1):
        above = max((depth[source] for source in facts.above(node)), default=0)
        depth[node] = above + (node in members)
        if node in members:
            levels.extend([] for _ in range(depth[node] - len(levels)))
            levels[depth[node] - 1].append(node)
    return levels


def _gain(facts: Facts, group: list[int]) -> float:
    """The geometric mean of what goes on below by what came from above, over a group."""
    logs = []
    for node in group:
        sent = [
            float(info.norm)
            for target, info in facts.sent(node)
            if info.state == "finite" and info.norm and not is_parameter(facts, target)
        ]
        received = _norm(facts, node)
        if sent and received:
            logs.append(math.log(max(sent) / received))
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def is_parameter(facts: Facts, node: int) -> bool:
    """Whether a node is a leaf, or a view of one."""
    nodes = facts.graph.nodes
    if nodes[node].kind == "leaf":
        return True
    below = list(facts.below(node))
    return facts.op(node) in VIEWS and len(below) == 1 and nodes[below[0]].kind == "leaf"


def joins_parameters(facts: Facts, node: int) -> bool:
    """Whether anything above a node has a parameter as another operand: whether a layer follows."""
    seen, pending = {node}, [node]
    while pending:
        for above in facts.above(pending.pop()):
            if above in seen:
                continue
            if any(is_parameter(facts, below) for below in facts.below(above)):
                return True
            seen.add(above)
            pending.append(above)
    return False


Starving = tuple[tuple[str, float], tuple[str, float]]
"""The names of two leaves and the mean sizes of what they got: next to nothing, and the most."""


def starving_line(found: Starving) -> str:
    """The same in words."""
    (small, least), (large, most) = found
    return f"{small} gets {short(least)}, {large} gets {short(most)} (root mean square)"


def starved_leaf(facts: Facts, node: int) -> Starving | None:
    """A leaf below a node with next to nothing, and the leaf with the most, by mean size."""
    below = facts.reachable([node])
    sizes: list[tuple[str, float, bool]] = []
    for leaf in facts.graph.leaves:
        info = facts.received(leaf.node)[0]
        if info.state in ("finite", "zero") and info.norm is not None:
            mean = float(info.norm) / math.sqrt(max(elements(leaf.tensor.shape), 1))
            sizes.append((facts.leaf_names[leaf.node], mean, leaf.node in below))
    far = [(name, size) for name, size, is_far in sizes if is_far]
    every = [(name, size) for name, size, _ in sizes]
    if not far:
        return None
    least = min(far, key=lambda entry: entry[1])
    most = max(every, key=lambda entry: entry[1])
    return (least, most) if least[1] < VANISHED * most[1] else None
