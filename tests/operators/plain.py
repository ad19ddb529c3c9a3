"""What plain torch makes of a case: its graph by a bare walk, and every gradient by hooks.

Knows nothing of gradscope.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.utils import _pytree as pytree

from tests.operators.database import Case, gradients

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


def run(case: Case) -> Plain:
    """Make the case twice, once with hooks and once without."""
    bare = case.make()
    roots = bare.roots(bare.call())
    torch.autograd.backward(roots, gradients(roots))
    found = Plain(leaves=[leaf.grad for leaf in bare.leaves])
    made = case.make()
    roots = made.roots(made.call())
    _walk(found, roots)
    _hook(found)
    torch.autograd.backward(roots, gradients(roots))
    return found


def rounding(case: Case) -> float:
    """How far rounding moves the gradient of any leaf: how far it is from that in double
    precision."""
    made = case.make()
    roots = made.roots(made.call())
    torch.autograd.backward(roots, gradients(roots))
    single = [leaf.grad for leaf in made.leaves]
    parts, spec = pytree.tree_flatten((made.input, made.args, made.kwargs))
    wide = [_doubled(part) for part in parts]
    made.input, made.args, made.kwargs = pytree.tree_unflatten(wide, spec)
    fed = [None if one is None else _doubled(one) for one in gradients(roots)]
    torch.autograd.backward(made.roots(made.call()), fed)
    pairs = zip(single, (leaf.grad for leaf in made.leaves), strict=True)
    apart = [(one - other).abs() for one, other in pairs if one is not None and other is not None]
    return max(float(one.nan_to_num(0, 0, 0).max()) for one in apart if one.numel())


def _doubled(part: Any) -> Any:
    if not isinstance(part, torch.Tensor) or not (part.is_floating_point() or part.is_complex()):
        return part
    wide = part.detach().to(torch.complex128 if part.is_complex() else torch.float64)
    return wide.requires_grad_(part.requires_grad)


def _walk(found: Plain, roots: list[torch.Tensor]) -> None:
    index: dict[Any, int] = {}

    def number(node: Any) -> int:
        if node not in index:
            index[node] = len(index)
            found.nodes.append(node)
        return index[node]

    starts = [get_gradient_edge(root) for root in roots]
    found.roots = [(number(start.node), start.output_nr) for start in starts]
    for source, node in enumerate(found.nodes):  # which grows meanwhile
        for slot, (target, output) in enumerate(node.next_functions):
            if target is not None:
                found.edges.append((source, slot, number(target), output))


def _hook(found: Plain) -> None:
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


def bytes_kept(case: Case) -> int:
    """The size of all storages that the graph keeps for backward, by saved-tensor hooks."""
    packed: weakref.WeakSet[_Packed] = weakref.WeakSet()

    def pack(tensor: torch.Tensor) -> _Packed:
        # With its history, a result that is saved would keep its own node alive.
        one = _Packed(tensor.detach())
        packed.add(one)
        return one

    made = case.make()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one.tensor):
        roots = made.roots(made.call())
    storages = [part.untyped_storage() for one in packed for part in _parts(one.tensor)]
    assert roots  # they hold the graph
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout is torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]
