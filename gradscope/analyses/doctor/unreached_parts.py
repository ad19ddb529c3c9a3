"""Parts of tensors, made beside a result that the whole tensors went into: ``u = net(xt)``, and the
gradient of ``u`` is asked for by ``xt[:, 0:1]``.

Knows nothing of who asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import MAX_NEAR, kinds
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import grad_fn_of
from gradscope.autograd.walk import Walked

_PARTS = kinds("Slice Select Split SplitWithSizes UnsafeSplit Unbind Index IndexSelect Gather")
_MOVING = (
    *_PARTS,
    *kinds("View UnsafeView Transpose Permute T Unsqueeze Squeeze Expand Cat Stack"),
)


def parts_of_used(walked: Walked, outside: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Of tensors that are not in a graph, those that only take, move or join elements of tensors
    which the graph leads to, and which go into it as a whole."""
    whole: set[int] | None = None
    found = []
    for tensor in outside:
        sources = _sources(walked, grad_fn_of(tensor))
        if sources and whole is None:
            whole = _taken_whole(walked)
        # Of a tensor that only parts are used of, another part may well be one that is not.
        if sources and whole is not None and whole.issuperset(sources):
            found.append(tensor)
    return found


def _sources(walked: Walked, made: Any) -> set[int]:
    """The positions of all that a tensor was taken or put together from; none where it was computed
    from anything else."""
    stack, seen, found = [made], set[Any](), set[int]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in walked.index:
            found.add(walked.index[node])
        elif node is None or len(seen) > MAX_NEAR or not _is(node, _MOVING):
            return set()
        else:
            stack.extend(target for target, _ in node.next_functions if target is not None)
    return found


def _taken_whole(walked: Walked) -> set[int]:
    """The positions of nodes whose results some other operation than one that takes parts took."""
    partial = {n for n, node in enumerate(walked.nodes) if _is(node, _PARTS)}
    return {target for source, _, target, _ in walked.edges if source not in partial}


def _is(node: Any, names: tuple[str, ...]) -> bool:
    # The derivative of such a backward is none of them.
    name = torch_name(node)
    return name.startswith(names) and "BackwardBackward" not in name
