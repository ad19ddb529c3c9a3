"""The 2-norm of a tensor of any size, to four digits at least.

torch adds up the squares of a float32 tensor on the CPU in a few running sums.  Of some millions of
elements the later ones are lost in rounding: the norm of twenty million equal numbers comes out
5 % wrong.  Products of parts are exact enough, and as fast.  Knows nothing of gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

MANY = 16_384
"""Elements from which on a norm is taken by parts."""

PART = 65_536
"""Elements of one product: in larger ones some processors, which add in fewer running sums, lose
the fourth digit."""

vector_norm: Callable[..., torch.Tensor] = torch.linalg.vector_norm

SURE = 1e-11
"""A norm above it has lost nothing that shows in four digits, however many elements there are."""

_LEAST = {
    kind: 100 * math.sqrt(torch.finfo(kind).tiny)
    for kind in (torch.float32, torch.complex64, torch.float64, torch.complex128)
}
"""The root mean square from which on that holds: a square below the least normal number is rounded
to a multiple of the least subnormal one, or to zero, so that so many of them are wrong by as many
times that number at the most."""


def is_exact(norm: float, tensor: torch.Tensor) -> bool:
    """Whether a norm that was taken in the tensor's own dtype is right to four digits: no square
    that counts has underflowed, and their sum has not overflowed."""
    if not 0 < norm < math.inf:
        return False
    return norm > SURE or norm > _LEAST[tensor.dtype] * math.sqrt(2 * tensor.numel())


def are_exact(norms: Sequence[float]) -> bool:
    """Whether all of these surely are, of whatever tensors: where one is NaN, the sum is."""
    return min(norms, default=math.inf) > SURE and sum(norms) < math.inf


def norm(tensor: torch.Tensor) -> float:
    """The 2-norm of a dense tensor of float32, float64 or a complex dtype; waits for its device.

    Squares underflow and overflow in the tensor's own dtype: see :func:`is_exact`.
    """
    if tensor.numel() < MANY:
        return vector_norm(tensor).item()
    times = 1
    if 0 in tensor.stride():  # expanded: the same elements again and again
        for dimension, stride in enumerate(tensor.stride()):
            if stride == 0:
                times *= tensor.shape[dimension]
                tensor = tensor.narrow(dimension, 0, 1)
    return math.sqrt(times * _square(tensor))


def _square(tensor: torch.Tensor) -> float:
    """The sum of the squares of all elements."""
    if tensor.is_complex():
        # Torch conjugates lazily, and shows no such tensor as real numbers.
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_contiguous():
        # The order of the elements is of no interest, so they are taken as they lie in memory.
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
    if tensor.is_contiguous():
        tensor = tensor.view(-1)
    if tensor.dim() > 1:
        # It cannot be laid out as one row without a copy.  Norms along the longest dimension are
        # the fewest, and these are added up in float64.
        longest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
        return float(vector_norm(vector_norm(tensor, dim=longest), dtype=torch.float64) ** 2)
    if tensor.numel() <= PART:
        return torch.dot(tensor, tensor).item()
    parts = torch.split(tensor, PART)
    # `fsum` rounds once, however many parts there are.
    return math.fsum(torch.dot(part, part).item() for part in parts)
