"""How large the gradients are that a node receives and sends, and those that leaves get; how that
changes along depth; and how much of an activation is flat.

Along depth it is asked of operations that repeat.  A group are the nodes of one expression in a
loop or a repeated block, or of one op in one function.  Its levels are how many of its nodes lie on
the way from the root.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts, elements, short
from gradscope.rules.questions.ops import VIEWS
from gradscope.walks import walk
from gradscope.words import count

VANISHED = 1e-5
"""What is left of a gradient, by what it was, below which it has vanished."""


def size_of(info: GradientInfo) -> float:
    """The 2-norm of a gradient; 0 where it is nothing or no number."""
    norm = 0.0 if info.norm is None else float(info.norm)
    return norm if math.isfinite(norm) else 0.0


def size_received(facts: Facts, node: int) -> float:
    """The 2-norm of all that a node received."""
    return math.hypot(*map(size_of, facts.received(node)))


class Flow(NamedTuple):
    """A node, and the 2-norms of what it received and of the largest gradient that it sent."""

    node: int
    received: float
    sent: float

    @property
    def gain(self) -> float:
        """By how much it multiplies the gradient."""
        return self.sent / self.received

    @property
    def line(self) -> str:
        """What the node received and sent, in words."""
        return f"received {short(self.received)} (2-norm), sent {short(self.sent)}"


def flow_of(facts: Facts, node: int, besides: Collection[int] = ()) -> Flow:
    """What a node received and sent; what it sent to the nodes ``besides`` does not count."""
    sent = [size_of(info) for target, info in facts.sent(node) if target not in besides]
    return Flow(node, size_received(facts, node), max(sent, default=0.0))


def largest_leaf(facts: Facts) -> tuple[str, float]:
    """The leaf that gets the largest gradient, by its 2-norm."""
    sizes = [(name, size_received(facts, leaf)) for leaf, name in facts.leaf_names.items()]
    return max(sizes, key=lambda entry: entry[1], default=("", 0.0))


def largest_below(facts: Facts) -> list[tuple[float, str]]:
    """For every node the size and name of the largest gradient that a leaf below it got."""
    found = [(0.0, "")] * len(facts.graph.nodes)
    # Edges lead to higher ids, so all below a node is known when it is asked for.
    for node in reversed(range(len(found))):
        if node in facts.leaf_names:
            found[node] = size_received(facts, node), facts.leaf_names[node]
        found[node] = max((found[target] for target in facts.below(node)), default=found[node])
    return found


def passed(facts: Facts, node: int) -> str:
    """What is passed at each level, in the words of one of its nodes: of what a line calls as a
    whole, such as a Sequential, the operation in it."""
    call = facts.graph.nodes[node].call
    is_inside = call is not None and facts.graph.calls[call].origin is None
    words = facts.words(node)
    return f"{facts.op(node)} in {words}" if is_inside and words != facts.op(node) else words


def starved_leaf(facts: Facts, node: int) -> str:
    """What a leaf below a node gets, where by mean size that is next to nothing beside what another
    leaf gets; else ""."""
    sizes: dict[int, float] = {}
    for leaf in facts.graph.leaves:
        info = facts.received(leaf.node)[0]
        if info.state in ("finite", "zero") and info.norm is not None:
            sizes[leaf.node] = float(info.norm) / math.sqrt(max(elements(leaf.tensor.shape), 1))
    below = facts.reachable([node])
    far = [leaf for leaf in sizes if leaf in below]
    if not far:
        return ""
    least, most = min(far, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[least] >= VANISHED * sizes[most]:
        return ""
    told = [f"{facts.leaf_names[leaf]} gets {short(sizes[leaf])}" for leaf in (least, most)]
    return f"{', '.join(told)} (root mean square)"


def is_parameter(facts: Facts, node: int) -> bool:
    """Whether a node is a leaf, or a view of one."""
    nodes = facts.graph.nodes
    if nodes[node].kind == "leaf":
        return True
    below = list(facts.below(node))
    return facts.op(node) in VIEWS and len(below) == 1 and nodes[below[0]].kind == "leaf"


def joins_parameters(facts: Facts, node: int) -> bool:
    """Whether anything above a node has a parameter as another operand: whether a layer follows."""
    above = walk(facts.above(node), facts.above)
    return any(is_parameter(facts, below) for one in above for below in facts.below(one))


# ---------------------------------------------------------------- along depth


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

    def vanished(self) -> str:
        """At how many levels, the last ones, next to nothing arrives."""
        left = itertools.takewhile(lambda norm: norm < VANISHED * self.norms[0], self.norms[::-1])
        many = sum(1 for _ in left)
        return f"less than 1e-5 of it arrives at the last {many:,} of {len(self.norms):,} levels"


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


# ---------------------------------------------------------------- activations


FEWEST_ELEMENTS = 16
"""With fewer, chance alone makes all of them flat."""


def shares(facts: Facts, kind: Literal["saturated", "dead"]) -> Iterable[tuple[list[int], float]]:
    """Activations by place, with the mean share of all calls made there."""
    known = {activity.node: float(getattr(activity, kind)) for activity in facts.seen.activities}
    for nodes in facts.by_place(sorted(known)).values():
        yield nodes, sum(known[node] for node in nodes) / len(nodes)


def passed_on(facts: Facts, node: int) -> Iterable[str]:
    """What it received and sent, in words."""
    received = [info.norm for info in facts.received(node) if info.norm is not None]
    sent = [info.norm for _, info in facts.sent(node) if info.norm is not None]
    if received and sent:
        yield f"received {short(received[0])} (2-norm), sent {short(sent[0])}"


def takers(facts: Facts, node: int) -> list[int]:
    """The nodes that take a node's result, views looked through."""
    above = walk(facts.above(node), lambda one: facts.above(one) if facts.op(one) in VIEWS else ())
    return [one for one in above if facts.op(one) not in VIEWS]
