"""Tensors as an explanation keeps them: norms, and values where they are few."""

from __future__ import annotations

import torch

from gradscope.autograd.decimals import SMALL
from gradscope.autograd.summary import measure
from gradscope.model.explanation import Amount


def amount(tensor: torch.Tensor, keep: int = SMALL) -> Amount:
    """Norm and, for at most ``keep`` elements, values of a tensor of any shape; those of a complex
    one are pairs."""
    info = measure(tensor, keep)
    return Amount("NaN" if info.norm is None else info.norm, info.values)


def zero(like: torch.Tensor, keep: int = SMALL) -> Amount:
    """The amount of a gradient that never arrived."""
    numbers = like.numel() * (2 if like.is_complex() else 1)
    return Amount(0.0, (0.0,) * numbers if like.numel() <= keep else None)
