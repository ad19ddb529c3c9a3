"""What each sample brings to an operand where an operation sums over all of them.

Of a few operations that sum is written out, over what the operation has saved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from gradscope.autograd import saved
from gradscope.autograd.nodes import op_name
from gradscope.words import short_op

Each = Callable[[torch.Tensor, int], torch.Tensor]
"""The part of each sample, along a dimension before the others, of a tensor that has the samples
along some dimension as the gradient has them along its own."""

_PRODUCTS = {
    "Mm": (0, "self", "mat2"),
    "Addmm": (1, "mat1", "mat2"),
    "Bmm": (0, "self", "mat2"),
    "Baddbmm": (1, "batch1", "batch2"),
}
"""By the operation: the slot of the left one of two matrices, and where both are saved."""

_NORMS = ("NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm")


class Contraction(NamedTuple):
    """An operand of one of torch's nodes, and the dimension of its result with the samples."""

    node: Any
    slot: int
    shape: torch.Size
    dim: int

    @torch.no_grad()
    def parts(self, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        """What each sample brings, along a dimension before the others, of a gradient that arrives
        at the node; None where no formula is known."""
        op = short_op(op_name(self.node))
        if op in _PRODUCTS and self.slot >= _PRODUCTS[op][0]:
            return self._of_product(op, gradient, each)
        if op == "Embedding":
            return self._of_embedding(gradient, each)
        if op == "Convolution" and self.slot == 1:
            return self._of_convolution(gradient, each)
        summands = self._summands(op, gradient)
        return None if summands is None else summed(each(summands, self.dim), self.shape)

    def _of_product(self, op: str, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        """Of A @ B: that of B is a sum over the rows of A, that of A one over the columns of B."""
        left, *names = _PRODUCTS[op]
        of_rows = self.dim == gradient.ndim - 2 and self.slot == left + 1
        of_columns = self.dim == gradient.ndim - 1 and self.slot == left
        other = saved.value(self.node, names[0 if of_rows else 1])
        if other is None or not (of_rows or of_columns):
            return None
        sent, factor = each(gradient, self.dim), each(other, self.dim).mH
        return (factor @ sent if of_rows else sent @ factor) * getattr(self.node, "_saved_alpha", 1)

    def _of_embedding(self, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        indices = saved.value(self.node, "indices")
        if indices is None or self.dim >= indices.ndim or self.node._saved_scale_grad_by_freq:
            return None
        is_padding = (indices == self.node._saved_padding_idx).unsqueeze(-1)
        brought, at = each(gradient.masked_fill(is_padding, 0), self.dim), each(indices, self.dim)
        samples = torch.arange(len(at), device=at.device).unsqueeze(1).expand(-1, at[0].numel())
        found = gradient.new_zeros(len(at), *self.shape)
        places = samples.reshape(-1), at.reshape(-1)
        return found.index_put_(places, brought.reshape(-1, self.shape[1]), accumulate=True)

    def _of_convolution(self, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        read, weight = (saved.value(self.node, name) for name in ("input", "weight"))
        if read is None or weight is None or self.dim:
            return None
        names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
        how = (None, *(getattr(self.node, f"_saved_{name}") for name in names))
        backward = torch.ops.aten.convolution_backward
        pairs = zip(each(gradient, 0), each(read, 0), strict=True)
        return torch.stack([backward(*two, weight, *how, [False, True, False])[1] for two in pairs])

    def _summands(self, op: str, gradient: torch.Tensor) -> torch.Tensor | None:
        """What an operation adds up over the dimensions along which the operand was broadcast."""
        if op == "Expand":
            return gradient
        if op in _PRODUCTS:
            return gradient * self.node._saved_beta  # type: ignore[no-any-return]
        if op in _NORMS and self.slot == 1:
            normal = _normal(op, self.node)
            if normal is None:
                return None
            gradient = gradient * normal
        if op == "NativeLayerNorm":
            return gradient
        has_channels = op in _NORMS or op == "Convolution"
        return gradient.movedim(1, -1) if has_channels and self.dim == 0 else None


def summed(each: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """What each sample brings to a tensor that was broadcast to more dimensions, or larger ones;
    None if it was not along that of the samples."""
    first = each.ndim - len(shape)
    dims = [*range(1, first), *(first + dim for dim, size in enumerate(shape) if size == 1)]
    found = each.sum(dims) if dims else each
    return found.reshape(-1, *shape) if found.numel() == len(each) * shape.numel() else None


def _normal(op: str, node: Any) -> torch.Tensor | None:
    """What a norm made of its input before it was scaled; None where it has mixed samples."""
    is_of_batch = op == "NativeBatchNorm"
    known = ("running_mean", "running_var") if is_of_batch else ("result1", "result2")
    read, mean, scale = (saved.value(node, name) for name in ("input", *known))
    if read is None or mean is None or scale is None or (is_of_batch and node._saved_training):
        return None
    if is_of_batch:
        return functional.batch_norm(read, mean, scale, eps=node._saved_eps)
    if op == "NativeGroupNorm":
        return functional.group_norm(read, node._saved_group, eps=node._saved_eps)
    return (read - mean) * scale
