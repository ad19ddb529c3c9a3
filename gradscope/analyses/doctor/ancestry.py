"""What lies behind a tensor: the leaves it was computed from, and the terms that it adds up.

Bounded walks over live nodes, by no recursion.  Knows nothing of what is looked for, and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gradscope.autograd.nodes import leaf_of, torch_name
from gradscope.autograd.tensors import grad_fn_of

MAX_BEHIND = 4_000
"""Nodes that are walked from one cut."""

MAX_TERMS = 200
"""Nodes at the top of a graph that are searched for the terms of a loss."""

_LINEAR = tuple(
    f"{op}Backward"
    for op in ("Add", "Sub", "Mul", "Div", "Neg", "Mean", "Sum", "Stack", "ToCopy", "Squeeze")
)


def terms_of(roots: Iterable[Any]) -> set[int]:
    """Sequence numbers of the nodes that only add up, or scale, the terms of a loss."""
    # By number, as all that is remembered of nodes: they themselves would keep the graph.
    found: set[int] = set()
    stack = [grad_fn_of(root) for root in roots if isinstance(root, torch.Tensor)]
    while stack and len(found) < MAX_TERMS:
        node = stack.pop()
        if node is None or not torch_name(node).startswith(_LINEAR):
            continue
        number = node._sequence_nr()
        below = [target for target, _ in node.next_functions if target is not None]
        # A product passes its terms on only where the other factor is a constant.
        if number not in found and (len(below) == 1 or not torch_name(node).startswith("Mul")):
            found.add(number)
            stack.extend(below)
    return found


def leaves_behind(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves from which some tensors were computed, as far as a bounded walk sees."""
    found: dict[int, torch.Tensor] = {}
    seen: dict[Any, None] = {}
    stack: list[Any] = []
    for tensor in tensors:
        made = grad_fn_of(tensor)
        if made is None:
            found[id(tensor)] = tensor
        else:
            stack.append(made)
    while stack and len(seen) < MAX_BEHIND:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        variable = leaf_of(node)
        if variable is not None:
            found[id(variable)] = variable
        stack.extend(target for target, _ in node.next_functions if target is not None)
    return list(found.values())
