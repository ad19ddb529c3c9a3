"""What a live node is called and what it keeps for backward.

Reads one node at a time; knows nothing of graphs or of the Report.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode


def op_name(live: LiveNode) -> str:
    """Torch's name of a node; the class of a custom Function as its author wrote it."""
    forward = getattr(live, "_forward_cls", None)
    if forward is not None:
        # Where the class was defined inside a function is of no interest.
        return str(forward.__qualname__).rpartition("<locals>.")[2]
    return _without_namespace(live.name())


@lru_cache(maxsize=4_096)
def _without_namespace(name: str) -> str:
    return name.rpartition("::")[2].rstrip(")")


def saved_tensors(node: LiveNode) -> Iterable[tuple[str, Any]]:
    """What a node kept for backward, by slot; a slot that cannot be read gives its RuntimeError."""
    if isinstance(node, BackwardCFunction):
        try:
            yield from ((f"saved_tensors[{i}]", t) for i, t in enumerate(node.saved_tensors))
        except RuntimeError as error:
            yield "saved_tensors", error
        return
    # Torch generates one attribute for each saved thing; there is no list of them.
    for name in slots_of(type(node)):
        try:
            yield name.removeprefix("_saved_"), getattr(node, name)
        except RuntimeError as error:
            yield name.removeprefix("_saved_"), error


@lru_cache(maxsize=4_096)
def slots_of(kind: type) -> tuple[str, ...]:
    """The names under which nodes of a type keep what they saved."""
    return tuple(name for name in dir(kind) if name.startswith("_saved_"))
