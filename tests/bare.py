"""What plain torch makes of a graph: nodes and edges by a bare walk of ``next_functions``, every
gradient by hooks, and the bytes that are kept by saved-tensor hooks.

Knows nothing of gradscope.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

Tensors = Sequence[torch.Tensor]
Gradient = torch.Tensor | None
Edge = tuple[int, int, int, int]
"""Source, its input slot, target, and the target's output."""


@dataclass
class Plain:
    """A graph and what flowed through it.

    ``upstream`` is what each node was given, one a output, for the nodes that backward came to;
    ``sent`` what it handed on, one a input slot.  ``leaves`` gives the gradient of each leaf.
    """

    roots: list[tuple[int, int]] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    upstream: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    sent: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    leaves: list[Gradient] = field(default_factory=list)


def walked(roots: Sequence[torch.Tensor | GradientEdge]) -> Plain:
    """The graph of these roots, without gradients."""
    found = Plain()
    index: dict[Any, int] = {}

    def number(node: Any) -> int:
        if node not in index:
            index[node] = len(index)
            found.nodes.append(node)
        return index[node]

    starts = [one if isinstance(one, GradientEdge) else get_gradient_edge(one) for one in roots]
    found.roots = [(number(start.node), start.output_nr) for start in starts]
    for source, node in enumerate(found.nodes):  # which grows meanwhile
        for slot, (target, output) in enumerate(node.next_functions):
            if target is not None:
                found.edges.append((source, slot, number(target), output))
    return found


def hook(found: Plain) -> None:
    """Have every node note what the next backward brings."""

    def before(source: int) -> Any:
        return lambda given: found.upstream.__setitem__(source, _copied(given))

    def after(source: int) -> Any:
        return lambda sent, _given: found.sent.__setitem__(source, _copied(sent))

    for source, node in enumerate(found.nodes):
        node.register_prehook(before(source))
        if node.next_functions:
            node.register_hook(after(source))


def _copied(gradients: tuple[Gradient, ...]) -> tuple[Gradient, ...]:
    return tuple(None if one is None else one.detach().clone() for one in gradients)


class _Packed:
    """What a saved-tensor hook of ours leaves in the place of a tensor; it dies with the graph."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def bytes_kept(make: Callable[[], Tensors]) -> int:
    """The size of all storages that the graph of what is made keeps for backward."""
    packed: weakref.WeakSet[_Packed] = weakref.WeakSet()

    def pack(tensor: torch.Tensor) -> _Packed:
        # With its history, a result that is saved would keep its own node alive.
        one = _Packed(tensor.detach())
        packed.add(one)
        return one

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one.tensor):
        roots = make()
    storages = [part.untyped_storage() for one in packed for part in _parts(one.tensor)]
    assert roots  # they hold the graph
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout is torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]
