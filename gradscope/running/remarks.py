"""What there is to say of a backward call besides its numbers.

What stands in the way of looking at it, and why it went nowhere.
"""

from __future__ import annotations

import shlex
from types import FrameType

import torch

from gradscope.autograd.calls import BackwardCall
from gradscope.errors import CaptureError, GradscopeError, RootError
from gradscope.graphing.initial_gradient import fit, implicit_gradient
from gradscope.graphing.roots import without_history
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder
from gradscope.words import added_up


def single(call: BackwardCall) -> torch.Tensor:
    """The one root of a call.

    Raises:
        RootError: when it starts from several.
    """
    root = call.roots[0]
    if len(call.roots) != 1 or not isinstance(root, torch.Tensor):
        raise RootError(
            f"the program's backward call starts from {len(call.roots)} tensors at once",
            "choose one of them: --root NAME",
        )
    return root


def misfit(call: BackwardCall) -> list[str]:
    """Why the gradient that the program gave, or did not give, does not fit its root."""
    for root, given in zip(call.roots, call.gradients, strict=True):
        try:
            # A nested root has no one shape that a gradient could be held against.
            if isinstance(root, torch.Tensor) and not root.is_nested:
                _ = implicit_gradient(root) if given is None else fit(given, root)
        except RootError as error:
            fitting = _fitting_code(root, given)  # type: ignore[arg-type]
            return [f"{error.what}; {fitting}" if fitting else str(error)]
    return []


def _fitting_code(root: torch.Tensor, given: torch.Tensor | None) -> str:
    """What to write in the program, where the shape is what is wrong."""
    sizes = ", ".join(map(str, root.shape))
    if given is None:
        weights = f"{root.numel():,} elements, as in backward(torch.ones({sizes}))"
        return f"give one weight for each of its {weights}"
    if given.shape == root.shape or given.numel() == root.numel() == 1:
        return ""
    if given.numel() == root.numel():
        return f"it has the right number of elements: give its .reshape({sizes})"
    more = added_up(given.numel(), root.numel())
    return f"one that fits: torch.ones({sizes or '()'})" + (f"; {more}" if more else "")


def batched(call: BackwardCall, scopes: Scopes) -> CaptureError:
    """Why the gradients of a vectorised call cannot be read."""
    names = [name for root in call.roots for name in scopes.names(root)]  # type: ignore[arg-type]
    return CaptureError(
        "this torch.autograd.grad call is vectorised (is_grads_batched), so its gradients "
        "cannot be read one by one",
        f"look at one row: --root {shlex.quote(names[0]) if names else 'NAME'} --gradient onehot:0",
    )


def refusal(recorder: Recorder, frames: list[FrameType]) -> GradscopeError | None:
    """Why the program's backward call had nowhere to go, if that is how it failed."""
    refused = (reference() for reference in recorder.refused)
    # Weak references: an operand that the program has let go of since has no name to tell.
    for tensor in (one for one in refused if one is not None):
        names = Scopes.of_frames(recorder.places.own_frames(frames)).names(tensor)
        return without_history(tensor, names[0] if names else "the root", recorder)
    return None
