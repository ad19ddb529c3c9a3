"""What one live node holds for backward, slot by slot, without running a hook of the program.

Reading ``node._saved_self`` unpacks it, which would run the program's saved-tensor hooks and
compute a checkpoint again; torch's ``SavedTensor`` objects tell what is behind a slot without that.
So a slot is unpacked only where no hook stands before it.  Before torch 2.13 nothing tells, and
there none is unpacked of a node that was made while hooks stood.  Knows nothing of storages or
graphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode
from torch.utils import _pytree as pytree

from gradscope.autograd import packing
from gradscope.autograd.elements import is_released, readable
from gradscope.autograd.isolation import living_tensors
from gradscope.autograd.nodes import IS_TOLD, op_name, slots_of
from gradscope.autograd.tensors import flat_tensors
from gradscope.errors import CaptureError

_FREED_LIST = object()

_DATA = (type(None), int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)

_EXPECTED = re.compile(r"expected version (\d+)")

_CHECKPOINT = "_checkpoint_hook."
"""How the hooks of ``torch.utils.checkpoint`` without reentrance are called."""


class SavedSlot(NamedTuple):
    """One saved tensor: what lies there, and the hook that would turn it into the tensor, if any.

    ``freed``: a backward call has been here.
    """

    name: str
    content: Any = None
    hook: Any = None
    freed: bool = False


def values(node: LiveNode) -> Iterator[tuple[str, torch.Tensor | RuntimeError]]:
    """The saved tensors of a node, by slot, as backward would read them; for those that it could
    not read, torch's reason.  What a hook of the program has packed is left out."""
    if isinstance(node, BackwardCFunction):
        yield from _values_of_custom(node)
        return
    for name in slots_of(type(node)):
        raw = _raw(node, name)
        if raw is None or _is_packed(node, raw):
            continue
        label = name.removeprefix("_saved_")
        try:
            value = getattr(node, name)
        except RuntimeError as error:
            # Without the frames of who reads it, which it would keep alive in a circle.
            yield label, error.with_traceback(None)
            continue
        for part, one in _numbered(label, value):
            if isinstance(one, torch.Tensor):
                yield part, one


def value(node: LiveNode, slot: str) -> torch.Tensor | None:
    """The tensor that a built-in node saved in a slot; None where there is none that can be
    read."""
    raw = getattr(node, f"_raw_saved_{slot}", None)
    if raw is None or _is_packed(node, raw):
        return None
    try:
        found = getattr(node, f"_saved_{slot}")
    except RuntimeError:
        return None
    return found if isinstance(found, torch.Tensor) and readable(found) else None


def unchecked(node: LiveNode, slot: str) -> list[torch.Tensor]:
    """The tensors behind a slot as they are now, also where torch no longer hands them out because
    they were changed; all of a custom Function's, for torch does not say which one it means."""
    if isinstance(node, BackwardCFunction):
        saved = list(_raw_of_custom(node) or ())
    else:
        # Torch hands the content of a SavedTensor out without looking at its version.
        saved = [getattr(node, f"_raw_saved_{slot}", None)]
    tensors = [getattr(raw, "data", None) for raw in saved]
    return [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]


def saved_version(error: RuntimeError) -> int:
    """Of which version the tensor was that torch no longer hands out, because it was changed; -1
    where torch does not say."""
    told = _EXPECTED.search(str(error))
    return int(told[1]) if told else -1


class ReleasedMemory:
    """What the program has given back of its tensors' memory, as it was when it was first asked."""

    def refusal(self, node: LiveNode) -> str:
        """Why to call a node would end the process, because the memory of something that it saved
        was given back; "" where it would not.  What a hook will bring back does not count."""
        name = op_name(node)
        if _is_untold(node) and self._is_any_released:
            return (
                f"torch does not tell what {name} saved, and the memory of some tensor has been "
                "given back"
            )
        return (
            f"the memory of what {name} saved has been given back" if self._is_short(node) else ""
        )

    @staticmethod
    def _is_short(node: LiveNode) -> bool:
        contents = [slot.content for slot in slots(node) if slot.hook is None]
        if isinstance(node, BackwardCFunction):
            contents += pytree.tree_leaves(vars(node))
        return any(is_released(one) for one in contents if isinstance(one, torch.Tensor))

    @cached_property
    def _is_any_released(self) -> bool:
        # A class of the program may answer by code of its own.
        plain = (torch.Tensor, torch.nn.Parameter)
        return any(is_released(one) for one in living_tensors() if type(one) in plain)


def is_packed(node: LiveNode) -> bool:
    """Whether a hook of the program stands before anything that a node saved."""
    return any(_is_packed(node, raw) for raw in _all_raw(node))


def require_readable_slots() -> None:
    """Make sure that this torch tells what is behind a slot.

    Raises:
        CaptureError: naming the version that does.
    """
    if not IS_TOLD:
        raise CaptureError(
            f"torch {torch.__version__} cannot show saved tensors without running the program's "
            "saved-tensor hooks",
            "gradscope memory needs torch 2.13 or newer",
        )


def slots(node: LiveNode) -> Iterator[SavedSlot]:
    """Every slot of a node in which something was saved, or had been before it was freed."""
    if isinstance(node, BackwardCFunction):
        yield from _custom(node)
        return
    for name in slots_of(type(node)):
        raw = _raw(node, name)
        if raw is _FREED_LIST:
            yield SavedSlot(name.removeprefix("_saved_"), freed=True)
            continue
        for label, one in _numbered(name.removeprefix("_saved_"), raw):
            slot = _read(label, one)
            if slot.content is not None:
                yield slot
            # Where there is no hook, asking torch itself runs nothing.
            elif not _is_packed(node, one) and _is_freed(node, name):
                yield slot._replace(freed=True)


def is_closed(node: LiveNode) -> bool:
    """Whether it is an in-place change of a view.  Its node holds that of the operation, and torch
    tells nobody what this one saved."""
    return type(node).__name__ == "CopySlices"


def attributes(node: LiveNode) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors that a custom Function put on its ``ctx`` itself, also in a list, tuple or dict."""
    if not isinstance(node, BackwardCFunction):
        return
    for name, value in vars(node).items():
        for inner in flat_tensors(value):
            yield f"ctx.{name}", inner


def keeps_only_data(node: LiveNode) -> bool:
    """Whether a copy of what a custom Function put on its ``ctx`` stands for it in every way; so it
    does for every other node.

    An iterator moves on, a generator of random numbers too, an object may hold anything; and what
    carries a graph is a part of it, or a weight that backward writes to.
    """
    return not isinstance(node, BackwardCFunction) or all(
        type(one) is torch.Tensor and not one.requires_grad
        if isinstance(one, torch.Tensor)
        else isinstance(one, _DATA)
        for one in pytree.tree_leaves(vars(node))
    )


def checkpoint_inputs(hook: Any) -> list[SavedSlot] | None:
    """What a checkpoint keeps to compute its part again; None if the hook is not a checkpoint's."""
    # A hook of the program may be an object, which has no such name.
    if not getattr(hook, "__qualname__", "").startswith(_CHECKPOINT):
        return None
    # What a checkpoint has kept is in the closure of its hook, and to be had in no other way.
    cells = dict(zip(hook.__code__.co_freevars, hook.__closure__ or (), strict=True))
    frame = cells["frame"].cell_contents if "frame" in cells else None
    found = (_read("checkpoint input", raw) for raw in getattr(frame, "saved_args", None) or ())
    return [slot for slot in found if slot.content is not None]


def _values_of_custom(node: Any) -> Iterator[tuple[str, torch.Tensor | RuntimeError]]:
    raw = _raw_of_custom(node)
    # `saved_tensors` unpacks all of them at once, so that one hook forbids the others, too.
    if raw is not None and _is_packed(node, raw):
        return
    try:
        for position, tensor in enumerate(node.saved_tensors):
            if isinstance(tensor, torch.Tensor):
                yield f"saved_tensors[{position}]", tensor
    except RuntimeError as error:
        yield "saved_tensors", error.with_traceback(None)


def _custom(node: Any) -> Iterator[SavedSlot]:
    saved = _raw_of_custom(node)
    if saved is None:
        yield SavedSlot("saved_tensors", freed=True)
        return
    for position, raw in enumerate(saved):
        slot = _read(f"saved_tensors[{position}]", raw)
        if slot.content is not None:
            yield slot


def _raw_of_custom(node: Any) -> tuple[Any, ...] | None:
    """The SavedTensors of a custom Function's node; None once they are freed."""
    try:
        return tuple(getattr(node, "_raw_saved_tensors", None) or ())
    except RuntimeError:  # raised for nothing but this
        return None


def _raw(node: LiveNode, name: str) -> Any:
    """What lies in a slot, still packed."""
    try:
        return getattr(node, f"_raw{name}", None)
    except RuntimeError:  # a list of tensors, as an Index has its indices, is not shown once freed
        return _FREED_LIST


def _all_raw(node: LiveNode) -> list[Any]:
    return [*(_raw(node, name) for name in slots_of(type(node))), _raw_of_custom(node) or ()]


def _is_untold(node: LiveNode) -> bool:
    """Whether torch does not tell what a node saved."""
    return is_closed(node) or (not IS_TOLD and any(_all_raw(node)))


def _is_packed(node: LiveNode, raw: Any) -> bool:
    """Whether a hook of the program stands before something that a node saved."""
    if not IS_TOLD:
        return raw not in (None, (), _FREED_LIST) and packing.stood(node._sequence_nr())
    parts = raw if isinstance(raw, (list, tuple)) else (raw,)
    return any(getattr(part, "unpack_hook", None) is not None for part in parts)


def _numbered(name: str, raw: Any) -> list[tuple[str, Any]]:
    """A slot may hold one saved tensor, or a list of them; others hold numbers and shapes."""
    if isinstance(raw, (list, tuple)):
        return [(f"{name}[{position}]", one) for position, one in enumerate(raw)]
    return [] if raw is None else [(name, raw)]


def _read(name: str, raw: Any) -> SavedSlot:
    return SavedSlot(name, getattr(raw, "data", None), getattr(raw, "unpack_hook", None))


def _is_freed(node: LiveNode, name: str) -> bool:
    try:
        getattr(node, name)
    except RuntimeError as error:
        # Torch raises the same type for a slot that was changed in place; only the words differ.
        return "freed" in str(error)
    return False
