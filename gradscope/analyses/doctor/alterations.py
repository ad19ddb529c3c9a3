"""What the program does to gradients on purpose: hooks on tensors, and clipping of ``.grad``."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import nn

from gradscope.autograd.summary import is_small
from gradscope.autograd.tensors import TensorTable, grad_fn_of, requires_grad
from gradscope.recording.names import locals_of
from gradscope.recording.places import Places
from gradscope.recording.torch_call import TorchCall

MAX_KNOWN = 5_000
"""Hooks, and places that clip, that are remembered."""

_MODULE_HOOKS = ("register_full_backward_hook", "register_full_backward_pre_hook")

CLIPPERS = ("clip_grad_norm_", "_clip_grads_with_norm_", "clip_grad_value_")


@dataclass
class KnownClip:
    """A place that made gradients smaller: the norm before and the bound, at its strongest."""

    function: str
    before: float | None
    after: float | None
    times: int = 0


class Alterations:
    """Hooks by the node (or leaf) whose gradient they get, and clipping by place."""

    def __init__(self) -> None:
        self.clips: dict[int, KnownClip] = {}
        self.module_hooks: dict[int, str] = {}
        self._originals: dict[str, Any] = {}
        self._on_nodes: dict[int, tuple[str, int]] = {}
        self._on_leaves: TensorTable[tuple[str, int]] = TensorTable(MAX_KNOWN)

    def start(self, places: Places) -> None:
        """Learn where hooks are hung on modules, which is not a torch call."""
        for name in _MODULE_HOOKS:
            original = self._originals[name] = vars(nn.Module)[name]
            setattr(nn.Module, name, self._noting(name, original, places))

    def stop(self) -> None:
        """Leave the class as it was."""
        for name, original in self._originals.items():
            setattr(nn.Module, name, original)
        self._originals.clear()

    def _noting(self, name: str, original: Any, places: Places) -> Any:
        @functools.wraps(original)
        def register(*args: Any, **kwargs: Any) -> Any:
            user = places.user_frame(sys._getframe(1))
            if user is not None and len(self.module_hooks) < MAX_KNOWN:
                self.module_hooks.setdefault(places.number(user), name)
            return original(*args, **kwargs)

        return register

    def note_hook(self, call: TorchCall) -> None:
        """The program hangs a hook on a tensor."""
        if not call.operands or len(self._on_nodes) >= MAX_KNOWN:
            return
        tensor = call.operands[0]
        node = grad_fn_of(tensor)
        if node is not None:
            self._on_nodes[node._sequence_nr()] = (call.function, call.place)
        elif requires_grad(tensor):
            self._on_leaves[tensor] = (call.function, call.place)

    @property
    def has_hooks(self) -> bool:
        """Whether any hook was seen."""
        return bool(self._on_nodes or self._on_leaves)

    def hook_on(self, sequence: int, leaf: torch.Tensor | None) -> tuple[str, int]:
        """The hook on a node or leaf, by name and place; "hook" and -1 where none was seen."""
        if leaf is not None:
            return self._on_leaves.get(leaf, ("hook", -1))
        return self._on_nodes.get(sequence, ("hook", -1))

    def note_clip(self, call: TorchCall) -> None:
        """A call in torch's own clipping functions changes gradients in place."""
        if call.function not in ("_foreach_mul_", "mul_", "_foreach_clamp_min_", "clamp_"):
            return
        function = _clipper(call.frame)
        if not function or len(self.clips) >= MAX_KNOWN:
            return
        before, after = _norms(call.frame)
        if before is not None and after is not None and before <= after:
            return
        known = self.clips.setdefault(call.place, KnownClip(function, before, after))
        if call.function.startswith("_foreach") or not known.times:
            known.times += 1
        if before is not None and before > (known.before or 0.0):
            known.before, known.after = before, after

    def start_step(self, oldest: int) -> None:
        """Forget hooks on nodes that were made before this sequence number."""
        self._on_nodes = {key: hook for key, hook in self._on_nodes.items() if key >= oldest}


def _clipper(frame: FrameType | None) -> str:
    """The clipping function that a frame is in; the one the program called, where they nest."""
    found = ""
    for _ in range(6):
        if frame is None:
            break
        if frame.f_code.co_name in CLIPPERS and "clip_grad" in frame.f_code.co_filename:
            found = frame.f_code.co_name.replace("_clip_grads_with_norm_", "clip_grad_norm_")
        frame = frame.f_back
    return found


def _norms(frame: FrameType | None) -> tuple[float | None, float | None]:
    for _ in range(6):
        if frame is None or "clip_grad" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    if frame is None:
        return None, None
    scope = locals_of(frame)
    return _number(scope.get("total_norm")), _number(scope.get("max_norm"))


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, torch.Tensor) and is_small(value, 1) and value.numel():
        return float(value.detach())
    return None
