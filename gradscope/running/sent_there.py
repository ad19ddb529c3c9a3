"""What the program's own backward call sends to a tensor that backward is to start from instead."""

from __future__ import annotations

import math

import torch

from gradscope.autograd.calls import BackwardCall, own_grad
from gradscope.autograd.decimals import shortest
from gradscope.autograd.elements import readable
from gradscope.autograd.isolation import grads_preserved
from gradscope.errors import RootError
from gradscope.graphing.initial_gradient import implicit_gradient
from gradscope.handlers import let_pass

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
