"""A reference that knows nothing of gradscope: a bare walk of each graph that the program sends a
gradient through, and a pre-hook on every node of it.

Installed in a run of its own, whose other output nobody looks at.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node

from tests.bare import walked

Seen = list[dict[str, Any]]
"""A record for each backward call: ``roots``, ``nodes`` (their names) and ``edges`` as in
:class:`tests.bare.Plain`, ``upstream`` (for each node the norm of what it received for each output;
None where nothing arrived), ``leaves`` (the ``.grad`` of each leaf after the call), ``failed``, and
``partial`` (whether only some gradients were asked for)."""

SMALL = 16


def install() -> Seen:
    """Watch the three functions by which a program starts backward; the list fills as it runs."""
    seen: Seen = []
    watch = _Watch(seen)
    torch.autograd.backward = watch.around(torch.autograd.backward, "tensors")
    torch.autograd.grad = watch.around(torch.autograd.grad, "outputs")
    torch.Tensor.backward = watch.around(torch.Tensor.backward, "self")  # type: ignore[method-assign]
    return seen


class _Watch:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._is_inside = False
        self._thread = threading.get_ident()

    def around(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            roots = _as_list(args[0] if args else kwargs.get(name))
            seen = [*roots, *_as_list(args[1] if len(args) > 1 else kwargs.get("inputs"))]
            # Of a gradient from edge to edge torch tells no mode.
            is_hidden = name == "outputs" and not any(isinstance(one, torch.Tensor) for one in seen)
            if self._is_inside or is_hidden or not self._counts(roots):
                return function(*args, **kwargs)
            self._is_inside = True
            try:
                with _Look(roots, self._seen) as look:
                    look.record["partial"] = name == "outputs" or "inputs" in kwargs
                    return function(*args, **kwargs)
            finally:
                self._is_inside = False

        return call

    def _counts(self, roots: Sequence[Any]) -> bool:
        """Whether this is a call on tensors of the program's own thread, not inside a transform."""
        return (
            threading.get_ident() == self._thread
            and torch._C._functorch.peek_interpreter_stack() is None
            and not torch.compiler.is_compiling()
            and bool(roots)
            and all(
                isinstance(root, GradientEdge)
                or (isinstance(root, torch.Tensor) and _is_of_the_program(root))
                for root in roots
            )
        )


def _is_rehearsed() -> bool:
    """Whether torch makes a call to compare it with differences, which no training step is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("autograd/gradcheck.py"):
            return True
        frame = frame.f_back
    return False


def _is_of_the_program(root: torch.Tensor) -> bool:
    # What torch.func.vjp returns goes backward from a shell of its transform, after its end.
    is_shell = torch._C._functorch.is_functorch_wrapped_tensor(root)
    return not is_shell and root.requires_grad


class _Look:
    """One call: the graph before it, its gradients while it runs."""

    def __init__(self, roots: Sequence[Any], seen: Seen) -> None:
        with torch._C.DisableTorchFunction():
            graph = walked(roots)
        # The wrappers are kept, or torch would make new ones with new hooks.
        self._nodes = graph.nodes
        self._arrived: list[list[float | None] | None] = [None] * len(self._nodes)
        self._handles: list[Any] = []
        self.record: dict[str, Any] = {
            "nodes": [_name_of(node) for node in self._nodes],
            "roots": graph.roots,
            "edges": graph.edges,
            "upstream": self._arrived,
            "failed": False,
            "rehearsed": _is_rehearsed(),
        }
        seen.append(self.record)

    def __enter__(self) -> _Look:
        for position, node in enumerate(self._nodes):
            self._handles.append(node.register_prehook(self._hook(position)))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.record["failed"] = kind is not None
        self.record["leaves"] = [
            _value(node.variable.grad) for node in self._nodes if hasattr(node, "variable")
        ]
        for handle in self._handles:
            handle.remove()

    def _hook(self, position: int) -> Callable[[Sequence[Any]], None]:
        def hook(gradients: Sequence[Any]) -> None:
            self._arrived[position] = [_norm(gradient) for gradient in gradients]

        return hook


def _name_of(node: Node) -> str:
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return "custom"
    name = node.name().rpartition("::")[2]
    # What TorchScript has compiled hides what is inside, as a custom Function does.
    return "custom" if name == "DifferentiableGraphBackward" else name


def _norm(gradient: Any) -> float | None:
    """The 2-norm in double precision; -1 where there are no numbers to read."""
    if gradient is None:
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        still = gradient.detach()
        if torch._C._functorch.is_functorch_wrapped_tensor(still):
            return -1.0
        still = still.values() if still.is_nested else still
        if still.device.type != "cpu" or type(still) is not torch.Tensor:
            return -1.0
        if still.layout is not torch.strided:
            still = still.to_dense()
        try:  # torch refuses where a part of its memory is not there
            still.as_strided(still.size(), still.stride(), still.storage_offset())
        except RuntimeError:
            return -1.0
        wide = torch.complex128 if still.is_complex() else torch.float64
        norm = float(torch.linalg.vector_norm(still.to(wide)))
        if math.isfinite(norm) or not bool(still.isfinite().all()):
            return norm
        # The squares of float64 may overflow.
        most = float(still.abs().max())
        return most * float(torch.linalg.vector_norm(still.to(wide) / most))


def _value(gradient: Any) -> dict[str, Any]:
    """All numbers of a small gradient, in double precision."""
    values = None
    if gradient is not None and _norm(gradient) not in (None, -1.0) and gradient.numel() <= SMALL:
        with torch.no_grad(), torch._C.DisableTorchFunction():
            still = gradient.detach()
            if still.layout is torch.strided:
                still = torch.view_as_real(still.resolve_conj()) if still.is_complex() else still
                values = still.double().reshape(-1).tolist()
    return {"dtype": str(getattr(gradient, "dtype", "")).removeprefix("torch."), "values": values}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (torch.Tensor, GradientEdge)):
        return [value]
    return list(value) if isinstance(value, Sequence) else []
