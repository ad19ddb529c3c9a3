"""What torch tells of one live node: its kind, its name, and what it keeps for backward.

The node of a custom Function is the ``ctx`` of its forward, and has whatever the program put there:
``ctx.variable``, ``ctx.name``.  So all that torch says by an attribute or a method which a program
may cover is asked here.  Knows nothing of graphs or of the Report.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

LEAF = "AccumulateGrad"
"""What torch calls the node at which a leaf gets its gradient."""

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
