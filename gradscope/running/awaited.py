"""Roots that come to be only as the program runs: the tensor that ``--root`` names, and, for
``--create-graph``, the gradient of a leaf as a root of its own, so that its graph can be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from gradscope.autograd.calls import own_grad
from gradscope.autograd.isolation import grads_preserved
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.tensors import requires_grad
from gradscope.errors import CaptureError, RootError, described
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import Unusable, named_root, unknown_root
from gradscope.graphing.study import made_tensor, nearest_leaves
from gradscope.graphing.watched_call import initial
from gradscope.handlers import let_pass
from gradscope.model.report import Graph
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder


class AwaitedRoot:
    """Looks for a root at each backward call, as long as it may still come.

    Args:
        text: the expression of ``--root``.
        recorder: what is known of how the graph was made.
    """

    def __init__(self, text: str, recorder: Recorder) -> None:
        self._text = text
        self._recorder = recorder
        self._unusable: Unusable | None = None
        self._seen: dict[str, None] = {}

    def found(self, scopes: Scopes, is_over: bool = False) -> torch.Tensor | None:
        """The root, at a backward call or when the program is over; None if it may yet come.

        Raises:
            RootError: the expression is wrong; or the program is over, and it never came, or was no
                tensor with history.
        """
        try:
            root = named_root(self._text, scopes, self._recorder)
        except Unusable as error:
            # `loss = 0.0` before a loop: what it is to be may come.
            if is_over:
                raise
            self._unusable = error
            return None
        if root is None:
            self._seen.update(dict.fromkeys(scopes.variable_names()))
            if is_over:
                raise self._unusable or unknown_root(self._text, self._seen)
        return root


def derivative(
    roots: Sequence[Any],
    gradients: Sequence[torch.Tensor | None],
    leaf: str,
    seen: tuple[Recorder, Scopes, FrameType | None],
) -> torch.Tensor:
    """The gradient that a leaf gets from these roots, with a graph of its own.

    Args:
        roots: tensors or gradient edges.
        gradients: one for each root, None for the implicit 1.
        leaf: its name, or that of another tensor between the roots and the leaves.
        seen: what is known of the program, the variables in sight, which learn the name of the
            gradient, and the frame of the program's call.

    Raises:
        RootError: when there is no such leaf, or a root needs a gradient.
        CaptureError: when the gradient does not come, or depends on nothing.
    """
    recorder, scopes, frame = seen
    probe = Probe(roots, recorder, scopes, Detail())
    probe.require_memory()
    tensor = _end(probe, scopes, leaf)
    seeds = [initial(root, seed) for root, seed in zip(roots, gradients, strict=True)]
    if any(seed is None for seed in seeds):
        raise RootError(
            "--create-graph needs a root of one element, or the program's own gradient for it",
            "name such a root with --root; --gradient is then fed in at the gradient of the leaf",
        )
    with (
        # The program's call may stand under no_grad.
        torch.enable_grad(),
        grads_preserved(),
        recorder.deriving(roots, frame, create_graph=True),
    ):
        try:
            (found,) = own_grad(roots, [tensor], seeds, create_graph=True)
        except Exception as error:  # torch's, or of a hook or a Function of the program
            let_pass(error)
            raise CaptureError(
                f"no graph of the gradient of {leaf}: {described(error)}",
                "look at the first pass: gradscope backward",
            ) from error
    return _usable(found, leaf, probe.graph, scopes)


def _end(probe: Probe, scopes: Scopes, name: str) -> Any:
    """The leaf of this name, or the gradient edge of a tensor that a node made."""
    made = made_tensor(name, probe, scopes)
    if made is not None:
        node = probe.walked.nodes[made[0]]
        leaf = leaf_of(node)
        return GradientEdge(node, made[1]) if leaf is None else leaf
    names = [one for leaf in probe.graph.leaves for one in leaf.names]
    what = f"--create-graph {name}: the graph has no such leaf"
    raise RootError(what, nearest_leaves(name, names))


def _usable(found: torch.Tensor | None, leaf: str, graph: Graph, scopes: Scopes) -> torch.Tensor:
    root = graph.roots[0].label or "root"
    name = f"∂{root}/∂{leaf}"
    if found is None:
        raise CaptureError(
            f"{leaf} gets no gradient", "why: gradscope explain, or gradscope doctor"
        )
    if not requires_grad(found):
        raise CaptureError(
            f"{name} depends on no leaf: the second derivative is 0 everywhere",
            "it is only worth a look where the root is not linear in that leaf",
        )
    if not scopes.names(found):
        scopes.add(name, found)
    return found
