"""What lies behind a tensor: the leaves it was computed from, the terms that it adds up, the parts
of larger results that it was made of.

Bounded walks over live nodes, by no recursion.  Knows nothing of what is looked for, and why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd.nodes import leaf_of, torch_name
from gradscope.autograd.tensors import grad_fn_of


def kinds(ops: str) -> tuple[str, ...]:
    """How torch's names for the nodes of these operations begin; it numbers their variants."""
    return tuple(f"{op}Backward" for op in ops.split())


MAX_BEHIND = 4_000
"""Nodes that are walked from one cut."""

MAX_TERMS = 200
"""Nodes at the top of a graph that are searched for the terms of a loss."""

MAX_NEAR = 64
"""Nodes behind a cut that are searched for the part of a result that it cuts off."""

_ADDING = kinds("Add Sub Stack Cat")
_SCALING = kinds("Mul Div Neg Mean Sum ToCopy Squeeze Unsqueeze View")
_FACTORS = kinds("Mul Div")
_SPLITTING = kinds("Split SplitWithSizes UnsafeSplit Unbind")
_TAKING = kinds("Select Slice")
_MOVING = kinds("View UnsafeView Transpose Permute T Clone Alias Unsqueeze Squeeze ToCopy")
_MULTIPLYING = kinds("Addmm Mm")
_ROUNDING = kinds("Round Floor Ceil Trunc")


_ELEMENTWISE = kinds(
    "Add Sub Rsub Mul Div Neg Abs Pow Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Sigmoid Tanh Relu "
    "LeakyRelu Softplus Clamp Minimum Maximum Fmin Fmax Where MaskedFill MaskedSelect NanToNum "
    "Lerp Addcmul Addcdiv Logaddexp Xlogy ToCopy Clone Alias View UnsafeView Squeeze Unsqueeze "
    "Expand Transpose T Permute Select Slice Index Stack Cat MseLoss SmoothL1Loss HuberLoss "
    "SoftMarginLoss BinaryCrossEntropy"
)
_REDUCING = kinds("Mean Sum Var Std LinalgVectorNorm Norm")


def summed_elements(roots: Iterable[Any]) -> set[int]:
    """Sequence numbers of the nodes between which and these roots lie nothing but operations on
    single elements and sums over them."""
    found: set[int] = set()
    stack = [grad_fn_of(root) for root in roots if isinstance(root, torch.Tensor)]
    while stack and len(found) < MAX_BEHIND:
        node = stack.pop()
        if node is None or leaf_of(node) is not None or node._sequence_nr() in found:
            continue
        found.add(node._sequence_nr())
        if torch_name(node).startswith((*_ELEMENTWISE, *_REDUCING)):
            stack.extend(target for target, _ in node.next_functions)
    return found


_SUMS = kinds("Add Sub Rsub")
_AVERAGING = kinds("Neg Mean ToCopy Squeeze Unsqueeze View")


def averaged_sums(roots: Iterable[Any]) -> set[int]:
    """Sequence numbers of the nodes that add or subtract what comes into these roots by nothing but
    more such sums, constant factors and means."""
    found: set[int] = set()
    seen: set[LiveNode] = set()
    stack = [grad_fn_of(root) for root in roots if isinstance(root, torch.Tensor)]
    while stack and len(seen) < MAX_TERMS:
        node = stack.pop()
        if node is None or leaf_of(node) is not None or node in seen:
            continue
        seen.add(node)
        below = [target for target, _ in node.next_functions if target is not None]
        is_scaled = len(below) == 1 and torch_name(node).startswith(_FACTORS)
        is_sum = torch_name(node).startswith(_SUMS)
        if is_sum:
            found.add(node._sequence_nr())
        if is_sum or is_scaled or torch_name(node).startswith(_AVERAGING):
            stack.extend(below)
    return found


class Terms(NamedTuple):
    """The terms of a loss: the top node of each, and the sequence numbers of the nodes that only
    add them up, or scale them."""

    tops: list[LiveNode]
    adding: set[int]


def terms_of(roots: Iterable[Any]) -> Terms:
    """The terms that these roots add up."""
    tops: dict[LiveNode, None] = {}
    # By number, as all that is remembered of nodes: they themselves would keep the graph.
    adding: set[int] = set()
    starts = [grad_fn_of(root) for root in roots if isinstance(root, torch.Tensor)]
    stack = [(node, node) for node in reversed(starts) if node is not None]
    seen: set[LiveNode] = set()
    while stack:
        node, top = stack.pop()
        below = [target for target, _ in node.next_functions if target is not None]
        is_sum = torch_name(node).startswith(_ADDING)
        # A product passes its terms on only where the other factor is a constant.
        is_linear = is_sum or (len(below) == 1 and torch_name(node).startswith(_SCALING))
        if not is_linear or len(seen) >= MAX_TERMS:
            tops[top] = None
        elif node not in seen:
            seen.add(node)
            adding.add(node._sequence_nr())
            # What a sum adds to a constant is still all of that term.
            is_split = len(below) > 1
            stack.extend((one, one if is_split else top) for one in reversed(below))
    return Terms(list(tops), adding)


Near = dict[int, tuple[int, ...]]
"""Nodes near a tensor by their sequence numbers, each with those that it takes; leaves by
:func:`number_of`."""


def number_of(tensor: torch.Tensor) -> int:
    """The sequence number of a tensor's node; for a leaf, which has none, a negative one."""
    node = grad_fn_of(tensor)
    return -id(tensor) if node is None else _number(node)


def _number(node: Any) -> int:
    variable = leaf_of(node)
    return int(node._sequence_nr()) if variable is None else -id(variable)


def near_behind(tensors: Iterable[torch.Tensor]) -> Near:
    """The nodes nearest to some tensors, the tensors' own first."""
    tensors = list(tensors)
    found: Near = {number_of(tensor): () for tensor in tensors if grad_fn_of(tensor) is None}
    waiting = deque(node for tensor in tensors if (node := grad_fn_of(tensor)) is not None)
    while waiting and len(found) < MAX_NEAR:
        node = waiting.popleft()
        number = _number(node)
        if number not in found:
            below = [target for target, _ in node.next_functions if target is not None]
            found[number] = tuple(map(_number, below))
            waiting.extend(below)
    return found


def are_related(one: Near, other: Near) -> bool:
    """Whether two tensors are so near that a sum of them is one value told in two parts: one is
    made of the other and of no leaf besides, or by a single operation (``x + (q - x).detach()``,
    ``x - x.max().detach()``), both are by a single operation made of a third, or all that either is
    made of is the same leaf."""
    first, second = next(iter(one)), next(iter(other))
    direct = {first, *one[first]} & {second, *other[second]}
    if first == second or any(number >= 0 for number in direct):
        return True
    if first in other[second] or second in one[first]:
        return True
    if _ends(one, first, second) == {second} or _ends(other, second, first) == {first}:
        return True
    ends = _ends(one, first), _ends(other, second)
    return ends[0] == ends[1] and len(ends[0]) == 1 and min(ends[0]) < 0


def _ends(near: Near, start: int, stop: int | None = None) -> set[int]:
    """What a node is made of: leaves, the one at which the search stops, and the nodes where what
    is known of those near it ends."""
    stack, seen, ends = [start], set[int](), set[int]()
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        if number == stop or not near.get(number):
            ends.add(number)
        else:
            stack.extend(near[number])
    return ends


def leaves_behind(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves from which some tensors were computed, as far as a bounded walk sees."""
    found: dict[int, torch.Tensor] = {}
    seen: dict[Any, None] = {}
    stack: list[Any] = []
    for tensor in tensors:
        made = grad_fn_of(tensor)
        if made is None and tensor._is_view() and tensor._base is not None:
            # A view that was made under `no_grad` has lost its node, but not what it looks into.
            tensor = tensor._base
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
