"""Live nodes: what torch tells of one, its kind, its name, and what it keeps for backward; and the
walk from ``grad_fn`` roots to an ordered list of nodes and edges.

The node of a custom Function is the ``ctx`` of its forward, and has whatever the program put there:
``ctx.variable``, ``ctx.name``. So all that torch says by an attribute or a method which a program
may cover is asked here. No recursion, so depth is bounded by memory only. Knows nothing of names,
values or the Report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.tensors import grad_fn_of
from gradscope.handlers import without_collector

LEAF = "AccumulateGrad"
"""What torch calls the node at which a leaf gets its gradient."""

AROUND_HOOKED = torch.nn.modules._functions.BackwardHookFunction
"""The identity that torch puts around a module with backward hooks."""

IS_TOLD = hasattr(torch._C._autograd.SavedTensor, "unpack_hook")
"""Whether torch tells what is behind a slot, and whether a hook stands before it."""

_LEAF_TYPE: type = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]


def is_leaf(node: object) -> bool:
    """Whether a live node is an AccumulateGrad."""
    return type(node) is _LEAF_TYPE


def is_barred(node: object) -> bool:
    """Whether a live node stands where the backward of a custom Function was differentiated, which
    is marked ``once_differentiable``."""
    return type(node).__name__ == "Error"


def leaf_of(node: Any) -> torch.Tensor | None:
    """The leaf in whose ``.grad`` a node accumulates; None for other nodes, and once it is gone."""
    return node.variable if is_leaf(node) else None


def below(node: LiveNode) -> list[LiveNode]:
    """The nodes to which a node sends gradients."""
    return [target for target, _ in node.next_functions if target is not None]


def nodes_of(tensors: Iterable[Any]) -> list[LiveNode]:
    """The nodes that made those of these that are tensors with history."""
    made = (grad_fn_of(one) for one in tensors if isinstance(one, torch.Tensor))
    return [node for node in made if node is not None]


def outputs_of(node: object) -> Sequence[Any]:
    """Torch's metadata of the forward tensors whose gradients a node receives."""
    # Torch calls it the input: what forward gave is what backward takes.
    return getattr(node, "_input_metadata", ())


def is_nested(described: Any) -> bool:
    """Whether what torch tells of a forward tensor, or that tensor itself, is nested: then it has
    no one shape."""
    return bool(
        getattr(described, "is_nested_tensor", False) or getattr(described, "is_nested", False)
    )


def torch_name(node: LiveNode) -> str:
    """The name that torch has for a node."""
    return type(node).name(node)


def op_name(live: LiveNode) -> str:
    """Torch's name of a node; the class of a custom Function as its author wrote it."""
    forward = getattr(live, "_forward_cls", None)
    if forward is not None:
        # Where the class was defined inside a function is of no interest.
        return str(forward.__qualname__).rpartition("<locals>.")[2]
    return without_namespace(torch_name(live))


def without_namespace(name: str) -> str:
    """A name that torch has for a node, without where torch's own code defines it."""
    return name.rpartition("::")[2].rstrip(")")


def slots_of(kind: type) -> tuple[str, ...]:
    """The names under which nodes of a type keep what they saved."""
    # A custom Function has a type of its own, which may be gone soon, and what it closes over.
    is_custom = issubclass(kind, BackwardCFunction)
    return () if is_custom else _slots_of(kind)


@lru_cache(maxsize=4_096)
def _slots_of(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_saved_"))


sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
"""The number of the node that this thread makes next."""

NO_SEQUENCE = 2**63
"""AccumulateGrad and the like carry a sequence number above this: they run as soon as they can."""

# Far from the 40,000 nodes or so at which 8 MiB of C stack overflow.
CUT = 8_192
"""In a deep graph, every so many nodes carry an object that releases the nodes below them in
order."""

Links = dict[LiveNode, tuple[tuple[LiveNode | None, int], ...]]
"""Where each node sends its gradients, by slot."""

METADATA_KEY = "gradscope.release"


@dataclass
class Walked:
    """Live nodes in topological order, roots first, and the edges between their positions.

    ``edges`` holds (source, slot, target, output) and is sorted; ``depth`` is the number of nodes
    on the longest path; ``sequences`` are torch's numbers of the nodes, none where ``ambiguous``
    many have the number of another one.  Holding this object keeps every node, and all that it
    saved, alive.
    """

    nodes: list[LiveNode]
    edges: list[tuple[int, int, int, int]]
    index: dict[LiveNode, int]
    depth: int
    sequences: list[int]
    ambiguous: int = 0

    def positions(self) -> dict[int, int]:
        """The position of each node that has a sequence number of its own, by that."""
        return {
            sequence: position
            for position, sequence in enumerate(self.sequences)
            if sequence < NO_SEQUENCE
        }


@without_collector
def walk(roots: Iterable[LiveNode]) -> Walked:
    """Every node that backward from these roots could reach.

    Nodes come in the order in which backward runs them on one thread, which is from the one made
    last to the one made first, each leaf after the last node that uses it.  So what was made one
    after the other has neighbouring ids, and the same program gives the same ids.  Where nodes were
    made by several threads, which count each for itself, the order is another one in which edges
    lead on, and a number that two nodes have says of neither who made it.
    """
    roots = list(dict.fromkeys(roots))
    links: Links = {}
    found = nearest(roots, links=links)
    sequences = {node: node._sequence_nr() for node in found}
    walked, is_ordered = _numbered(_by_creation(found, sequences, links), sequences, links)
    if not is_ordered:
        above: dict[LiveNode, list[LiveNode]] = {node: [] for node in found}
        for node, slots in links.items():
            for target, _ in slots:
                if target is not None:
                    above[target].append(node)
        walked, _ = _numbered(list(TopologicalSorter(above).static_order()), sequences, links)
    made = [number for number in walked.sequences if number < NO_SEQUENCE]
    if len(set(made)) < len(made):
        times = Counter(made)
        walked.ambiguous = sum(many for many in times.values() if many > 1)
        walked.sequences = [one if times[one] == 1 else NO_SEQUENCE for one in walked.sequences]
    return walked


def _by_creation(
    found: list[LiveNode], numbers: dict[LiveNode, int], links: Links
) -> list[LiveNode]:
    made = [node for node in found if numbers[node] < NO_SEQUENCE]
    made.sort(key=numbers.__getitem__, reverse=True)
    # Walked backwards, the first user met is the last: its leaves follow it, in the order of slots.
    order: list[LiveNode] = []
    placed: set[LiveNode] = set()
    for node in reversed(made):
        for target, _ in reversed(links[node]):
            if target is not None and numbers[target] >= NO_SEQUENCE and target not in placed:
                placed.add(target)
                order.append(target)
        order.append(node)
    # A root may be a leaf itself, which nothing uses.
    order += [node for node in found if numbers[node] >= NO_SEQUENCE and node not in placed]
    order.reverse()
    return order


def _numbered(
    order: list[LiveNode], sequences: dict[LiveNode, int], links: Links
) -> tuple[Walked, bool]:
    """The nodes in this order, and whether every edge leads on in it."""
    index = {node: position for position, node in enumerate(order)}
    edges: list[tuple[int, int, int, int]] = []
    is_ordered = True
    # Edges come by their source, and lead to later nodes only: one pass in order is enough.
    depth = [1] * len(order)
    for source, node in enumerate(order):
        below = depth[source] + 1
        for slot, (live, output) in enumerate(links[node]):
            if live is not None:
                target = index[live]
                edges.append((source, slot, target, output))
                if depth[target] < below:
                    depth[target] = below
                if target <= source:
                    is_ordered = False
    numbers = [sequences[node] for node in order]
    return Walked(order, edges, index, max(depth, default=0), numbers), is_ordered


def nearest(
    roots: Iterable[LiveNode], limit: int | None = None, links: Links | None = None
) -> list[LiveNode]:
    """The nodes below some roots, nearest first, at most ``limit`` of them.

    ``links`` takes the ``next_functions`` of each, which torch makes anew whenever it is asked.

    A third of the cost of :func:`walk`, for those who need neither edges nor order.
    """
    # ``next_functions`` makes a new Python wrapper for a C++ node whose old one is gone; the result
    # holds each wrapper, or two nodes could share an id and be taken for one.
    found = list(dict.fromkeys(roots))
    seen = set(found)
    # The list grows while it is read: it is its own queue.
    for node in found:
        if limit is not None and len(found) >= limit:
            break
        below = node.next_functions
        if links is not None:
            links[node] = below
        for target, _ in below:
            if target is not None and target not in seen:
                seen.add(target)
                found.append(target)
    return found


class _Release:
    """Frees nodes parents first.

    torch keeps the Python object of a node that Python once touched, and then frees a chain of such
    nodes recursively: past about 40,000 of them the C stack overflows.  Hung on a node's metadata,
    this object dies with that node and lets go of the ones below one at a time.
    """

    def __init__(self, nodes: list[LiveNode]) -> None:
        self._nodes = nodes

    def __del__(self) -> None:
        # Parents first, and from the end of the list: to take them from its beginning is quadratic.
        self._nodes.reverse()
        while self._nodes:
            self._nodes.pop()


def make_release_safe(walked: Walked) -> None:
    """Make sure that dropping any tensor of a walked deep graph cannot overflow the C stack.

    Does nothing for graphs less than :data:`CUT` nodes deep, so that nothing of ours stays on them.
    """
    if walked.depth < CUT:
        return
    for start in range(0, len(walked.nodes), CUT):
        below = walked.nodes[start + 1 : start + 1 + 2 * CUT]
        metadata: Any = walked.nodes[start].metadata  # a property, which torch declares a method
        metadata[METADATA_KEY] = _Release(below)
