"""How the size of the gradient changes along depth, at the operations that repeat.

A group are the nodes of one expression in a loop or a repeated block, or of one op in one function.
Its levels are how many of its nodes lie on the way from the root.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradscope.rules.facts import Facts, short
from gradscope.rules.questions.norms import flow_of, is_parameter, size_received
from gradscope.rules.questions.ops import VIEWS
from gradscope.words import count

FEWEST_LEVELS = 5
STEADY = 0.75
"""Share of levels on which a trend must go on."""

SINGLE = 0.6
"""Share of a trend (of its logarithm) that one level may have: more is no matter of depth."""


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

    def lines(self, facts: Facts) -> Iterable[str]:
        """What is seen of it."""
        a_level = self.ratio ** (1 / (len(self.norms) - 1))
        yield (
            f"‖g‖ from {short(self.norms[0])} to {short(self.norms[-1])} over "
            f"{count(len(self.norms), 'level')}, ×{short(a_level)} a level"
        )
        yield f"{facts.op(self.nodes[0])} itself multiplies it by {short(self.gain)}"


def trends(facts: Facts) -> list[Trend]:
    """All groups whose gradient shrinks or grows steadily by orders of magnitude."""
    by_expression: dict[object, list[int]] = {}
    by_function: dict[object, list[int]] = {}
    for node in facts.graph.nodes:
        origin = facts.graph.origin_of(node)
        is_operation = node.kind != "leaf" and node.short_op not in VIEWS
        if is_operation and origin is not None and size_received(facts, node.id):
            by_expression.setdefault((node.origin, node.op), []).append(node.id)
            by_function.setdefault((origin.file, origin.function, node.op), []).append(node.id)
    # By function for layers that are written out one below the other.
    for groups in (by_expression, by_function):
        found = [trend for group in groups.values() for trend in _trend(facts, group)]
        if found:
            return found
    return []


def _trend(facts: Facts, group: list[int]) -> Iterable[Trend]:
    received = [size_received(facts, node) for node in group]
    # The second spares the walk below for almost every group.
    if len(group) < FEWEST_LEVELS or max(received) < 1e3 * min(received):
        return
    levels = _levels(facts, group)
    if len(levels) < FEWEST_LEVELS:
        return
    sizes = [math.hypot(*(size_received(facts, node) for node in nodes)) for nodes in levels]
    steps = [math.log(after / before) for before, after in itertools.pairwise(sizes)]
    whole = math.log(sizes[-1] / sizes[0])
    if max(map(abs, steps)) > SINGLE * abs(whole):
        return
    growing = sum(step > 0 for step in steps) / len(steps)
    if growing >= STEADY if whole > 0 else growing <= 1 - STEADY:
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
        flow = flow_of(facts, node, [one for one in facts.below(node) if is_parameter(facts, one)])
        if flow.sent:
            logs.append(math.log(flow.gain))
    return math.exp(sum(logs) / len(logs)) if logs else 1.0
