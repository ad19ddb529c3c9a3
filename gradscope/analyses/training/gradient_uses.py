"""The hooks of the program on gradients: of tensors and of modules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.tensors import TensorTable, grad_fn_of, requires_grad
from gradscope.recording.hook_codes import HookCodes, KnownHook
from gradscope.recording.torch_call import TorchCall

MAX_HOOKS = 5_000
"""Nodes and leaves with a hook that are remembered."""


class Alterations:
    """Hooks by the node (or leaf) whose gradient they get."""

    def __init__(self) -> None:
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

    def start_step(self, oldest: int) -> None:
        """Forget hooks on nodes that were made before this sequence number."""
        self._on_nodes = {key: hook for key, hook in self._on_nodes.items() if key >= oldest}
