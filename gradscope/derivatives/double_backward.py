"""The backward of one call as a function of its own: of the operands and of the upstream gradients,
with the gradients of the operands as its results.

Its gradient is what double backward gives.  Knows nothing of how that is judged.
"""

from __future__ import annotations

import torch

from gradscope.autograd.isolation import functions_on
from gradscope.autograd.nodes import is_barred
from gradscope.autograd.walk import nearest
from gradscope.derivatives.double_precision import Tensors, Unrepeatable
from gradscope.derivatives.single_call import SingleCall, cotangent, dense_of
from gradscope.errors import described
from gradscope.handlers import let_pass

UPSTREAM = "the upstream gradient"


class MarkedOnce(Unrepeatable):
    """The author of a Function has ruled double backward out."""


class BackwardAlone(SingleCall):
    """The same for the backward of a call; arguments and errors as of :class:`SingleCall`."""

    def _prepare(self) -> None:
        with torch.no_grad():
            self._upstream = [cotangent(one) for one in self._made(self._copies())]

    @property
    def inputs(self) -> Tensors:
        """The operands that carry a gradient, and the upstream gradients."""
        return [*super().inputs, *self._upstream]

    def _settle(self) -> None:
        super()._settle()
        self._upstream = [one.detach() for one in self._upstream]

    def _outputs(self) -> Tensors:
        is_followed = torch.is_grad_enabled()
        copies = self._copies()
        wanted = [copies[slot] for slot in self.slots]
        for one in wanted:
            if not one.requires_grad:
                one.requires_grad_()
        with torch.enable_grad():
            # Copied once more: it may change an operand in place, which a leaf does not allow.
            given = {slot: one.clone() for slot, one in copies.items()}
            made = self._made(given)
            upstream = [one.clone() for one in self._upstream]
            pairs = [(one, up) for one, up in zip(made, upstream, strict=True) if one.grad_fn]
            roots, seeds = [one for one, _ in pairs], [up for _, up in pairs]
            try:
                with functions_on():
                    found = torch.autograd.grad(
                        roots, wanted, seeds, create_graph=is_followed, allow_unused=True
                    )
            except Exception as error:
                let_pass(error)
                raise Unrepeatable(f"backward raised {described(error)}") from None
        made_by = [one.grad_fn for one in found if one is not None and one.grad_fn is not None]
        # Torch raises only where such a node has something behind it that a gradient is asked for.
        if any(map(is_barred, nearest(made_by))):
            raise MarkedOnce("its backward is marked once_differentiable")
        return [
            torch.zeros_like(one) if got is None else _dense(got)
            for one, got in zip(wanted, found, strict=True)
        ]


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient if gradient.layout is torch.strided else dense_of(gradient)
