"""The node that a custom Function left in the graph beside a fresh run of it: they differ where the
node uses what another call has left, such as a tensor kept on the class instead of on ``ctx``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode
from torch.utils import _pytree as pytree

from gradscope.autograd import saved
from gradscope.autograd.isolation import own_pass
from gradscope.autograd.nodes import outputs_of
from gradscope.derivatives.call import Call
from gradscope.derivatives.compare import Compared
from gradscope.derivatives.finite_differences import Judgement, element_of
from gradscope.derivatives.rerun import program_runs
from gradscope.derivatives.single_call import SingleCall
from gradscope.derivatives.wide_function import cotangent, real
from gradscope.handlers import let_pass
from gradscope.model.studies import GradientComparison

STALE = {torch.float64: 1e-6, torch.float32: 1e-2}
"""How far the gradients of the program's own node may be from those in float64, relative."""


class Own(NamedTuple):
    """What the program's own node gives, one gradient an argument, and whether its backward, in the
    program's precision, ``writes`` into the gradient that it is given."""

    gradients: list[torch.Tensor | None]
    writes: bool


def own_gradients(call: Call, nodes: Iterable[LiveNode]) -> Own | None:
    """What the node that a custom Function left in the graph gives for fixed upstream gradients;
    None when that cannot be asked."""
    node: Any = next((one for one in nodes if isinstance(one, BackwardCFunction)), None)
    is_custom = call.custom is not None and node is not None and not call.problem
    if not (is_custom and saved.keeps_only_data(node)):
        return None
    if saved.is_packed(node) or saved.ReleasedMemory().refusal(node):
        return None
    upstream = [_upstream(described) for described in outputs_of(node)]
    given = [one.clone() for one in upstream]
    found = _backward_again(call.custom, node, given)
    if found is None:
        return None
    found = found if isinstance(found, tuple) else (found,)
    still = [one.detach().clone() if isinstance(one, torch.Tensor) else None for one in found]
    writes = not all(map(torch.equal, given, upstream))
    return Own(still, writes) if len(still) == len(call.leaves) else None


def _backward_again(custom: Any, node: Any, upstream: Sequence[torch.Tensor]) -> Any:
    """What the backward of a custom Function returns when it is run once more with a copy of what
    its node has: it may change or drop that, and is yet to run in the program; None where it
    raises."""
    backward = custom.backward if custom.vjp is torch.autograd.Function.vjp else custom.vjp
    try:
        context = SimpleNamespace(**pytree.tree_map_only(torch.Tensor, torch.clone, vars(node)))
        context.needs_input_grad = node.needs_input_grad
        context.saved_tensors = tuple(
            None if one is None else one.detach().clone().requires_grad_(one.requires_grad)
            for one in node.saved_tensors
        )
        with torch.no_grad(), own_pass(), program_runs():
            return backward(context, *upstream)
    except Exception as error:
        let_pass(error)
        return None


def _upstream(described: Any) -> torch.Tensor:
    like = torch.empty(tuple(described.shape), dtype=described.dtype, device=described.device)
    if not (like.is_floating_point() or like.is_complex()):
        return torch.zeros_like(like)
    return cotangent(like).to(like.dtype)


def beside_own(
    call: Call, compared: Compared[SingleCall], own: Own
) -> tuple[GradientComparison, ...] | None:
    """The inputs, where the gradients of the node that is in the graph differ from those of a fresh
    run: the first such input is wrong; None where they agree."""
    gradients = compared.gradients.of_inputs
    for comparison in compared.inputs:
        slot, fresh = compared.alone.slots[comparison.input], gradients[comparison.input]
        mine = [one for leaf, one in zip(call.leaves, own.gradients, strict=True) if leaf is slot]
        if fresh is None or len(mine) != 1 or mine[0] is None:
            continue
        tolerance = STALE.get(mine[0].dtype)
        if tolerance is None:
            continue
        right = real(fresh)
        try:
            # As torch does by itself.
            left = mine[0].double().sum_to_size(right.shape)
        except RuntimeError:
            continue
        difference = (left - right).abs()
        if float(difference.norm()) <= tolerance * float(right.norm()) + 1e-7:
            continue
        index = element_of(int(difference.argmax()), right.shape)
        analytic, numeric = float(left[index]), float(right[index])
        error = abs(analytic - numeric) / max(abs(analytic), abs(numeric))
        judged = Judgement("wrong", analytic, numeric, error)
        told = GradientComparison(
            comparison.input, comparison.name, "wrong", *judged.numbers, index
        )
        return tuple(told if one is comparison else one for one in compared.inputs)
    return None
