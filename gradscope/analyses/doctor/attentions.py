"""Calls in which positions attend to positions: a softmax over one axis, and torch's own attention;
which of the pairs take part."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from gradscope.autograd.elements import is_plain, is_small
from gradscope.recording.torch_call import TorchCall

LARGEST = 1_000_000
"""Elements that are read of weights, or of a mask."""

LOWEST = -1_000
"""What is added to the scores of a pair that is to take no part is below this."""


class Attention(NamedTuple):
    """So many positions attend to so many; ``seen``: the pairs that take part, or None for all."""

    queries: int
    keys: int
    seen: torch.Tensor | None


def attention_of(call: TorchCall) -> Attention | None:
    """What a call is of that; None where it is none, or too large to be read."""
    if call.function == "softmax":
        out, dim = call.results[0], call.kwargs.get("dim", (*call.args, None, None)[1])
        if type(dim) is not int or not out.dim() or not is_small(out, LARGEST):
            return None
        is_last = out.dim() > 1 and dim % out.dim() == out.dim() - 1
        return Attention(out.shape[-2] if is_last else 0, out.shape[dim], out.detach() != 0)
    is_single = call.function == "scaled_dot_product_attention"
    if not is_single and call.function != "multi_head_attention_forward":
        return None
    names = ("query", "key", "value", *(("attn_mask", "dropout_p", "is_causal") * is_single))
    given: dict[str, Any] = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    masks = (given.get("attn_mask"), given.get("key_padding_mask"))
    if not all(one is None or is_plain(one) for one in (given["query"], given["key"], *masks)):
        return None
    queries, keys = (given[name].shape[-2 if is_single else 0] for name in ("query", "key"))
    mask, padding = masks
    seen = None if mask is None else _taking_part(mask, not is_single)
    if padding is not None:
        others = _taking_part(padding, True)[:, None]
        seen = others if seen is None or seen.dim() > 2 else seen & others
    if is_single and given.get("is_causal"):
        seen = torch.ones(queries, keys, dtype=torch.bool).tril()
    return Attention(queries, keys, seen)


def _taking_part(mask: torch.Tensor, is_turned: bool) -> torch.Tensor:
    """The pairs that a mask leaves; ``is_turned``: true leaves out."""
    if mask.dtype is not torch.bool:
        return mask.detach() > LOWEST
    return ~mask if is_turned else mask
