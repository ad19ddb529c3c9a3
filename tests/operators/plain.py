"""What plain torch makes of a case.  Knows nothing of gradscope."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from tests import bare
from tests.bare import Plain
from tests.operators.database import Case, gradients


def run(case: Case) -> Plain:
    """Make the case twice, once with hooks and once without."""
    alone = case.make()
    roots = alone.roots(alone.call())
    torch.autograd.backward(roots, gradients(roots))
    made = case.make()
    roots = made.roots(made.call())
    found = bare.walked(roots)
    bare.hook(found)
    torch.autograd.backward(roots, gradients(roots))
    found.leaves = [leaf.grad for leaf in alone.leaves]
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


def bytes_kept(case: Case) -> int:
    """The size of all storages that the graph keeps for backward."""
    made = case.make()  # before any hook: what the samples are made of counts not
    return bare.bytes_kept(lambda: made.roots(made.call()))
