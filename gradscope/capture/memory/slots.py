"""What one live node holds for backward, slot by slot, as it lies there.

Reading ``node._saved_self`` unpacks it, which would run the program's saved-tensor hooks and
compute a checkpoint again; torch's ``SavedTensor`` objects tell what is behind a slot without that.
Knows nothing of storages or graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

from gradscope.capture.nodes import slots_of
from gradscope.errors import CaptureError

_CHECKPOINT = "_checkpoint_hook."
"""How the hooks of ``torch.utils.checkpoint`` without reentrance are called."""


class Slot(NamedTuple):
    """One saved tensor: what lies there, and the hook that would turn it into the tensor, if any.

    ``freed``: a backward call has been here.
    """

    name: str
    content: Any = None
    hook: Any = None
    freed: bool = False


def require_readable_slots() -> None:
    """Make sure that this torch tells what is behind a slot.

    Raises:
        CaptureError: naming the version that does.
    """
    if not hasattr(torch._C._autograd.SavedTensor, "unpack_hook"):
        raise CaptureError(
            f"torch {torch.__version__} cannot show saved tensors without running the program's "
            "saved-tensor hooks",
            "gradscope memory needs torch 2.13 or newer",
        )


def slots(node: LiveNode) -> Iterator[Slot]:
    """Every slot of a node in which something was saved, or had been before it was freed."""
    if isinstance(node, BackwardCFunction):
        yield from _custom(node)
        return
    for name in slots_of(type(node)):
        raw = getattr(node, f"_raw{name}", None)
        for label, one in _numbered(name.removeprefix("_saved_"), raw):
            slot = _read(label, one)
            if slot.content is not None:
                yield slot
            # Without content there is no hook either, so that asking torch itself runs nothing.
            elif _is_freed(node, name):
                yield slot._replace(freed=True)


def attributes(node: LiveNode) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors that a custom Function put on its ``ctx`` itself, also in a list, tuple or dict."""
    if not isinstance(node, BackwardCFunction):
        return
    for name, value in vars(node).items():
        for inner in tensors_in(value):
            yield f"ctx.{name}", inner


def checkpoint_inputs(hook: Any) -> list[Slot] | None:
    """What a checkpoint keeps to compute its part again; None if the hook is not a checkpoint's."""
    if not getattr(hook, "__qualname__", "").startswith(_CHECKPOINT):
        return None
    cells = dict(zip(hook.__code__.co_freevars, hook.__closure__ or (), strict=True))
    frame = cells["frame"].cell_contents if "frame" in cells else None
    found = (_read("checkpoint input", raw) for raw in getattr(frame, "saved_args", None) or ())
    return [slot for slot in found if slot.content is not None]


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors that something is or directly contains."""
    inside = list(value.values()) if isinstance(value, dict) else value
    for one in inside if isinstance(inside, (list, tuple)) else (inside,):
        if isinstance(one, torch.Tensor):
            yield one


def _custom(node: Any) -> Iterator[Slot]:
    try:
        saved = node._raw_saved_tensors
    except RuntimeError:  # raised for nothing but this
        yield Slot("saved_tensors", freed=True)
        return
    for position, raw in enumerate(saved or ()):
        slot = _read(f"saved_tensors[{position}]", raw)
        if slot.content is not None:
            yield slot


def _numbered(name: str, raw: Any) -> list[tuple[str, Any]]:
    """A slot may hold one saved tensor, or a list of them; others hold numbers and shapes."""
    if isinstance(raw, (list, tuple)):
        return [(f"{name}[{position}]", one) for position, one in enumerate(raw)]
    return [] if raw is None else [(name, raw)]


def _read(name: str, raw: Any) -> Slot:
    return Slot(name, raw.data, raw.unpack_hook)


def _is_freed(node: LiveNode, name: str) -> bool:
    try:
        getattr(node, name)
    except RuntimeError as error:
        return "freed" in str(error)
    return False
