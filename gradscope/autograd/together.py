"""One node of torch's, called for several gradients at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch._vmap_internals import _vmap


def together(
    node: Any, several: Sequence[Sequence[torch.Tensor | None]]
) -> Sequence[torch.Tensor | None]:
    """What a node sends for each of several, along a dimension before the others.

    Args:
        node: one of torch's own; code of the program may look at what it is given.
        several: the arguments of each call, the same of them undefined in all.

    Raises:
        Exception: torch can compute some of it one after the other only.
    """
    columns = [
        None if any(one is None for one in column) else stacked(column)
        for column in zip(*several, strict=True)
    ]
    given = [one for one in columns if one is not None]

    def alone(*gradients: torch.Tensor) -> Any:
        left = iter(gradients)
        sent = node(*(None if one is None else next(left) for one in columns))
        return sent if isinstance(sent, tuple) else (sent,)

    with torch.no_grad(), _no_fallback():
        # As ``is_grads_batched`` does it, which sends them through the engine.
        return _vmap(alone, 0, 0, allow_none_pass_through=True)(*given)  # type: ignore[no-any-return]


def stacked(tensors: Sequence[Any]) -> torch.Tensor:
    """The tensors along a dimension before their own; where they lie in memory as parts of one,
    that one itself."""
    first, second = tensors[:2]
    step = second.storage_offset() - first.storage_offset()
    known = first.untyped_storage().data_ptr(), first.shape, first.stride(), first.dtype
    for place, one in enumerate(tensors):
        own = one.untyped_storage().data_ptr(), one.shape, one.stride(), one.dtype
        if own != known or one.storage_offset() != first.storage_offset() + place * step:
            return torch.stack([*tensors])
    if step < 0 or first.is_conj() or first.is_neg():
        return torch.stack([*tensors])
    sizes, strides = (len(tensors), *first.shape), (step, *first.stride())
    return first.as_strided(sizes, strides)  # type: ignore[no-any-return]


@contextlib.contextmanager
def _no_fallback() -> Iterator[None]:
    """Torch refuses what it can only do one after the other: it would warn of it, and so can we."""
    functorch: Any = torch._C._functorch
    before = functorch._is_vmap_fallback_enabled()
    functorch._set_vmap_fallback_enabled(False)
    try:
        yield
    finally:
        functorch._set_vmap_fallback_enabled(before)
