"""What in a backward call of the program stands in the way of looking at it, in words."""

from __future__ import annotations

import shlex

import torch

from gradscope.autograd.calls import BackwardCall
from gradscope.errors import CaptureError, SeedError
from gradscope.graphing.initial_gradient import fit, implicit_gradient
from gradscope.recording.names import Scopes


def single(call: BackwardCall) -> torch.Tensor:
    """The one root of a call.

    Raises:
        SeedError: when it starts from several.
    """
    root = call.roots[0]
    if len(call.roots) != 1 or not isinstance(root, torch.Tensor):
        raise SeedError(
            f"the program's backward call starts from {len(call.roots)} tensors at once",
            "choose one of them: --root NAME",
        )
    return root


def misfit(call: BackwardCall) -> list[str]:
    """Why the gradient that the program gave, or did not give, does not fit its root."""
    for root, given in zip(call.roots, call.gradients, strict=True):
        try:
            if isinstance(root, torch.Tensor) and not root.is_nested:
                _ = implicit_gradient(root) if given is None else fit(given, root)
        except SeedError as error:
            return [str(error)]
    return []


def batched(call: BackwardCall, scopes: Scopes) -> CaptureError:
    """Why the gradients of a vectorised call cannot be read."""
    names = [name for root in call.roots for name in scopes.names(root)]  # type: ignore[arg-type]
    return CaptureError(
        "this torch.autograd.grad call is vectorised (is_grads_batched), so its gradients "
        "cannot be read one by one",
        f"look at one row: --root {shlex.quote(names[0]) if names else 'NAME'} --gradient onehot:0",
    )
