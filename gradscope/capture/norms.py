"""The 2-norm of a tensor of any size, to six digits.

torch adds up the squares of a float32 tensor on the CPU in a few running sums.  Of some millions of
elements the later ones are lost in rounding: the norm of ten million equal numbers is wrong in the
second digit.  By parts it is not, and takes no longer.  Knows nothing of gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

MANY = 32_768
"""Elements from which on a norm is taken by parts."""

PART = 1_024

_norm: Callable[..., torch.Tensor] = torch.linalg.vector_norm


def norm(tensor: torch.Tensor) -> float:
    """The 2-norm of a dense tensor of float32, float64 or a complex dtype; waits for its device.

    Squares underflow and overflow in the tensor's own dtype.
    """
    if tensor.numel() < MANY:
        return _norm(tensor).item()
    return _norm_by_parts(tensor)


def _norm_by_parts(tensor: torch.Tensor) -> float:
    times = 1
    if 0 in tensor.stride():  # expanded: the same elements again and again
        for dimension, stride in enumerate(tensor.stride()):
            if stride == 0:
                times *= tensor.shape[dimension]
                tensor = tensor.narrow(dimension, 0, 1)
    if tensor.numel() >= MANY:
        tensor = _norms_of_parts(tensor)
    return _norm(tensor, dtype=torch.float64).item() * math.sqrt(times)


def _norms_of_parts(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_contiguous():
        # The order of the elements is of no interest, so they are taken as they lie in memory.
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
    if tensor.is_contiguous():
        if tensor.numel() % PART == 0:  # nearly all
            return _norm(tensor.view(-1, PART), dim=1)
        tensor = tensor.view(-1)
    if tensor.dim() > 1:
        longest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
        return _norm(tensor, dim=longest)
    rest = tensor[tensor.numel() // PART * PART :]
    return torch.cat([_norm(tensor.unfold(0, PART, PART), dim=1), _norm(rest).view(1)])
