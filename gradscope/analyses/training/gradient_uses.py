"""What the program does with gradients: hooks on tensors and modules, clipping of ``.grad``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from torch.nn.utils import clip_grad

from gradscope.autograd.elements import one_number
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.tensors import (
    TensorTable,
    grad_fn_of,
    requires_grad,
)
from gradscope.model.observations import Alteration
from gradscope.recording.hook_codes import HookCodes, KnownHook
from gradscope.recording.names import locals_of
from gradscope.recording.torch_call import TorchCall

MAX_HOOKS = 5_000
"""Nodes and leaves with a hook that are remembered."""


class Alterations:
    """Hooks by the node (or leaf) whose gradient they get, and clipping by place."""

    def __init__(self) -> None:
        self.call = 0
        """The number of the last backward call."""
        self._clips: dict[int, Alteration] = {}
        """By place: the norm before and the bound where that was strongest, and the least norm."""
        self.module_hooks: dict[int, str] = {}
        self.codes = HookCodes()
        self._on_nodes: dict[int, KnownHook] = {}
        self._on_leaves: TensorTable[KnownHook] = TensorTable(MAX_HOOKS)

    def note_module_hook(self, name: str, place: int, given: Iterable[Any]) -> None:
        """The program hangs a hook on a module."""
        self.module_hooks.setdefault(place, name)
        self.codes.note(given, name, place)

    def note_hook(self, call: TorchCall) -> None:
        """The program hangs a hook on a tensor."""
        if not call.operands or len(self._on_nodes) >= MAX_HOOKS:
            return
        self.codes.note((*call.args[1:], *call.kwargs.values()), call.function, call.place)
        tensor, hook = call.operands[0], KnownHook(call.function, call.place)
        node = grad_fn_of(tensor)
        if node is not None:
            # By its number: to hold the node would keep the graph.
            self._on_nodes[node._sequence_nr()] = hook
        elif requires_grad(tensor):
            self._on_leaves[tensor] = hook

    @property
    def has_hooks(self) -> bool:
        """Whether any hook was seen."""
        return bool(self._on_nodes or self._on_leaves or self.module_hooks)

    def hook_on(self, node: Any) -> KnownHook:
        """The hook on a node, or on the leaf that it is of; "hook" and -1 where none was seen."""
        none, leaf = KnownHook("hook", -1), leaf_of(node)
        if leaf is not None:
            return self._on_leaves.get(leaf, none)
        return self._on_nodes.get(node._sequence_nr(), none)

    def note_clip(self, call: TorchCall) -> None:
        """A call changes something in place: in torch's own clipping, where the program calls a
        function of that which it had before anyone watched?"""
        if call.frame.f_code.co_filename == clip_grad.__file__:
            scope = locals_of(call.frame)
            norm, bound = scope.get("total_norm"), scope.get("max_norm")
            self.note_clipping("clip_grad_norm_", call.place, norm, bound)

    def note_clipping(self, function: str, place: int, norm: Any, bound: Any) -> None:
        """A function of torch clips: the norm that it has found, and the one that it allows."""
        before, after = one_number(norm), one_number(bound)
        # What is not finite says nothing about the bound: a scaler skips that step, and other rules
        # tell where it comes from.
        if before is None or not math.isfinite(before):
            return
        known = self._clips.setdefault(place, Alteration(place, function, least=before))
        known.least = min(before, float(known.least or 0.0))
        # Torch multiplies by 1 where nothing is too large.
        if after is not None and before > max(after, float(known.before or 0.0)):
            known.before, known.after, known.call = before, after, self.call

    def clipped(self) -> Iterator[Alteration]:
        """The places that have made a gradient smaller."""
        return (one for one in self._clips.values() if one.after is not None)

    def start_step(self, oldest: int) -> None:
        """Forget hooks on nodes that were made before this sequence number."""
        self._on_nodes = {key: hook for key, hook in self._on_nodes.items() if key >= oldest}
