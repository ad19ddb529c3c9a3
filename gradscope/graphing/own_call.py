"""A backward call of ours through a graph of the program, made so that nothing shows it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch

from gradscope.autograd.calls import BackwardCall, own_grad
from gradscope.autograd.isolation import grads_preserved, own_pass
from gradscope.autograd.nodes import is_leaf, torch_name
from gradscope.autograd.walk import Walked


def own_call(
    roots: Sequence[Any],
    gradients: Sequence[torch.Tensor | None],
    walked: Walked,
    frame: FrameType | None = None,
) -> BackwardCall:
    """The call that sends these gradients through a walked graph, and returns those of its leaves.

    Buffers are kept, ``.grad`` stays as it is, and nothing is accumulated.  Hooks that the program
    put on tensors do run, as in any backward.  ``frame`` is who asks for it, if that matters.
    """
    inputs: list[Any] = [node.variable for node in walked.nodes if is_leaf(node)]  # type: ignore[attr-defined]

    def make() -> tuple[torch.Tensor | None, ...]:
        # Although no `.grad` is asked for: a reentrant checkpoint makes a backward call of its own,
        # and what was retained is added to by any pass.
        with grads_preserved(), own_pass():
            return _sent(roots, gradients, inputs, walked)

    return BackwardCall.own(list(roots), list(gradients), inputs, frame or sys._getframe(), make)


def _sent(
    roots: Sequence[Any],
    gradients: Sequence[torch.Tensor | None],
    inputs: list[Any],
    walked: Walked,
) -> tuple[torch.Tensor | None, ...]:
    # Reentrant checkpointing calls backward inside backward, which torch allows only where
    # gradients are accumulated.
    reentrant = any(torch_name(node) == "CheckpointFunctionBackward" for node in walked.nodes)
    if reentrant or not inputs:
        torch.autograd.backward(roots, gradients, retain_graph=True)
        return ()
    # Asking for all leaves as inputs leaves every ``.grad`` alone.
    return own_grad(roots, inputs, gradients)
