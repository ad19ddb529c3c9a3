"""What there is to say of a backward call besides its numbers.

What stands in the way of looking at it, why it went nowhere, which reads of ``.grad`` beside it
will find None, and what it sends to a tensor that backward is to start from instead.
"""

from __future__ import annotations

import math
import shlex
from types import FrameType

import torch

from gradscope.autograd.calls import BackwardCall, own_grad
from gradscope.autograd.elements import readable
from gradscope.autograd.isolation import grads_preserved
from gradscope.autograd.numbers import shortest
from gradscope.autograd.tensors import grad_fn_of
from gradscope.errors import CaptureError, GradscopeError, RootError
from gradscope.graphing.initial_gradient import fit, implicit_gradient
from gradscope.graphing.roots import without_history
from gradscope.handlers import let_pass
from gradscope.recording.names import Scopes, value_in_frame
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


def futile_reads(recorder: Recorder, frame: FrameType) -> list[str]:
    """Remarks on lines near the call that will find None in the ``.grad`` of a non-leaf."""
    lines: dict[str, list[int]] = {}
    for line, path in recorder.sources.grad_reads(frame.f_code):
        tensor = value_in_frame(path, frame)
        # Only where the variable is such a tensor now: before this line it may be another.
        if isinstance(tensor, torch.Tensor) and grad_fn_of(tensor) and not tensor.retains_grad:
            lines.setdefault(path, []).append(line)
    return [
        f"{path}.grad, read at line {', '.join(map(str, sorted(set(numbers))))}, stays None: "
        f"{path} is not a leaf, and torch keeps such a gradient only after "
        f"{path}.retain_grad(). It is shown here."
        for path, numbers in lines.items()
    ]


def refusal(recorder: Recorder, frames: list[FrameType]) -> GradscopeError | None:
    """Why the program's backward call had nowhere to go, if that is how it failed."""
    refused = (reference() for reference in recorder.refused)
    # Weak references: an operand that the program has let go of since has no name to tell.
    for tensor in (one for one in refused if one is not None):
        names = Scopes.of_frames(recorder.places.own_frames(frames)).names(tensor)
        return without_history(tensor, names[0] if names else "the root", recorder)
    return None


MOST_WRITTEN = 16
"""Elements of a gradient that is written out."""


def implicit_start(
    root: torch.Tensor, name: str | None, call: BackwardCall | None
) -> tuple[torch.Tensor, list[str]]:
    """The gradient 1 for a chosen root, and what the program's own call sends there.

    Args:
        root: where backward starts.
        name: what ``--root`` calls it; None where it was not chosen.
        call: the call of the program at which this is done, if any.

    Raises:
        RootError: when the root has more elements than one; says what the program sends there.
    """
    sent = None if name is None or call is None else _sent(call, root)
    if sent is None:
        return implicit_gradient(root), []
    words = f"the program's own backward call sends {_shown(sent)} to {name}"
    option = f"--gradient {_quoted(sent)}" if sent.numel() <= MOST_WRITTEN else ""
    try:
        seed = implicit_gradient(root)
    except RootError as error:
        raise RootError(error.what, *error.hints, f"{words}{option and ': '}{option}") from None
    start = f"backward starts from {name} with 1, as no --gradient is given"
    if bool((sent == 1).all()):
        return seed, []
    return seed, [f"{start}; {words}: {option} starts with that"]


def _sent(call: BackwardCall, root: torch.Tensor) -> torch.Tensor | None:
    """What arrives at a tensor; None where the call does not come to it, or fails."""
    if call.batched:
        return None
    try:
        with grads_preserved():
            (found,) = own_grad(call.roots, [root], call.gradients)
    except Exception as error:  # the program's call will fail as well, and say why
        let_pass(error)
        return None
    is_shown = found is not None and readable(found) and not found.is_complex()
    return found.detach() if is_shown and found is not None else None


def _numbers(sent: torch.Tensor) -> list[float]:
    single = sent.dtype is torch.float32
    return [float(shortest(value, single)) for value in sent.double().reshape(-1).tolist()]


def _shown(sent: torch.Tensor) -> str:
    if sent.numel() <= MOST_WRITTEN:
        return _literal(sent)
    return f"a gradient of ‖g‖ {float(sent.double().norm()):.4g}"


def _literal(sent: torch.Tensor) -> str:
    """The numbers in nested lists, as they are typed."""
    texts = [f"{value:.7g}" if math.isfinite(value) else str(value) for value in _numbers(sent)]
    for size in reversed(sent.shape):
        size = max(size, 1)
        groups = (texts[start : start + size] for start in range(0, len(texts), size))
        texts = [f"[{', '.join(group)}]" for group in groups]
    return texts[0] if texts else "[]"


def _quoted(sent: torch.Tensor) -> str:
    text = _literal(sent)
    return f'"{text}"' if " " in text or "[" in text else text
