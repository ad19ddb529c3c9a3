"""Tensors as an explanation keeps them: norms, and values where they are few."""

from __future__ import annotations

import torch

from gradscope.capture.summary import SMALL, measure
from gradscope.explanation import Amount


def amount(tensor: torch.Tensor, keep: int = SMALL) -> Amount:
    """Norm and, for at most ``keep`` elements, values of a real tensor of any shape."""
    info = measure(tensor, keep)
    return Amount("NaN" if info.norm is None else info.norm, info.values)


def zero(like: torch.Tensor, keep: int = SMALL) -> Amount:
    """The amount of a gradient that never arrived."""
    return Amount(0.0, (0.0,) * like.numel() if like.numel() <= keep else None)
