"""How large the gradients are that a node receives and sends, and those that leaves get."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts, elements, short
from gradscope.rules.questions.ops import VIEWS
from gradscope.walks import walk

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
        """The same in words."""
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
