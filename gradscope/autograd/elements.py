"""Whether the elements of a tensor can be read: asked before every read of a program's tensor.

Memory may be given back while its tensors live: a storage is resized, to nothing or to a part, as
FSDP does with a parameter between its uses.  To read what is not there ends the process.  Knows
nothing of what is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Real
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from gradscope.autograd.tensors import (
    address_of,
    dense_parts,
    has_storage,
    is_fake,
    is_functorch_wrapped,
    storage_number,
)
from gradscope.patched import Original, Patched, by_way_of

_ORDINARY = frozenset([torch.Tensor, torch.nn.Parameter])

_C: Any = torch._C


def _counts_holders() -> bool:
    """Whether torch counts python, which has held a storage once, as one more holder for ever: else
    one that was resized looks as it was made."""
    if storage_number is None or not hasattr(_C, "_storage_Use_Count"):
        return False
    # The program may have modes of its own when it imports us.
    with _C.DisableTorchFunction(), _disable_current_modes():
        held = torch.empty(1, device="cpu")
        held.untyped_storage()
        return bool(_C._storage_Use_Count(storage_number(held)) == 2)


_use_count: Callable[[int], int] | None = _C._storage_Use_Count if _counts_holders() else None


def why_unreadable(tensor: torch.Tensor) -> str:
    """Why the elements cannot be read by calls on the tensor itself, in words; "" where they can.

    Everything that reads a tensor of the program asks here, or by one of the shorter ways below:
    dense, computed by torch and not by a class or mode of the program, and in memory that is there.
    """
    # Reading makes calls: a mode of the program would hear them, one of fake tensors refuses them.
    if torch._C._len_torch_dispatch_stack():
        return "a dispatch mode of the program is active"
    if is_functorch_wrapped(tensor):
        return "a transform of torch.func has wrapped it"
    if tensor.is_quantized:  # torch neither adds up nor shows the integers of those
        return "it is quantized"
    if tensor.is_nested:
        return "it is nested"
    if not is_plain(tensor):
        return f"it is a {type(tensor).__name__} of layout {str(tensor.layout)[6:]}"
    if tensor.is_meta:
        return "it is on the meta device"
    return "" if has_data(tensor) else "its memory is not there"


def readable(tensor: torch.Tensor) -> bool:
    """Whether the elements can be read: see :func:`why_unreadable`."""
    return not why_unreadable(tensor)


def is_small(tensor: torch.Tensor, most: int) -> bool:
    """Whether a tensor has at most so many elements, and they can be read."""
    # A class of the program may answer even the first by code of its own.
    return _has_no_code(tensor) and tensor.numel() <= most and readable(tensor)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is dense and computed by torch itself, not by a class of the program;
    whether it has data or not."""
    return _has_no_code(tensor) and is_dense(tensor)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements of a tensor are laid out by strides, and not sparse or nested."""
    return tensor.layout is torch.strided and not tensor.is_nested


def _has_no_code(tensor: torch.Tensor) -> bool:
    return type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def is_ordinary(tensor: torch.Tensor) -> bool:
    """Whether a gradient is what nearly all are: dense, of no class but torch's own, with data."""
    return type(tensor) is torch.Tensor and is_dense(tensor) and has_memory(tensor)


def has_data(still: torch.Tensor) -> bool:
    """Whether there are elements behind the metadata of a tensor, of whatever layout or class; of a
    distributed one the local part counts."""
    # So is nearly every tensor, and has no parts.
    if type(still) in _ORDINARY and is_dense(still) and has_storage(still):
        return has_memory(still)
    if is_fake(still):
        return False
    return all(map(has_memory, dense_parts(still)[0]))


def is_released(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor was given back, all of it or a part."""
    try:
        # So is nearly every parameter, and asked more quickly.
        if type(tensor) in _ORDINARY and is_dense(tensor) and not is_functorch_wrapped(tensor):
            return _is_short(tensor)
        return any(map(_is_short, dense_parts(tensor)[0]))
    except RuntimeError:  # of a kind that has none
        return False


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether all elements of a dense tensor lie in memory that is there.

    Makes no python object for its storage: once there is one, torch counts it as one more holder
    for ever, and adds the next gradient that is on its way to a copy instead of in place.
    """
    try:
        if not address_of(tensor):
            # Wrappers and the zeros of autograd have a storage of the right size, and nothing in
            # it; an empty tensor needs none, but torch reads none without data either.
            return not (tensor.is_meta or tensor.numel() or tensor._is_zerotensor())
    except RuntimeError:  # no storage at all: a shell of some kind
        return False
    # Of one that is its only holder the memory is as large as it was made, since to resize it to a
    # part of itself python needs an object that holds it.
    if _use_count and storage_number and _use_count(storage_number(tensor)) == 1:
        return True
    return _fits(tensor)


def _is_short(tensor: torch.Tensor) -> bool:
    there = tensor.untyped_storage().nbytes()
    if tensor.nbytes <= there and tensor.is_contiguous() and not tensor.storage_offset():
        return False  # elements side by side need no more than this; others are counted
    return bool(tensor.numel()) and extent(tensor) > there


def _fits(tensor: torch.Tensor) -> bool:
    """Whether a tensor's storage is large enough for it, as torch finds when it makes a view."""
    still = tensor.detach() if tensor.requires_grad else tensor
    try:
        still.as_strided(still.size(), still.stride(), still.storage_offset())
    except RuntimeError:
        return False
    return True


def extent(tensor: torch.Tensor) -> int:
    """The bytes from the beginning of the storage to the end of the last element."""
    last = tensor.storage_offset()
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        last += (size - 1) * stride
    return int((last + 1) * tensor.itemsize)


class MemoryLeftAlone(TorchFunctionMode):
    """While it is active, a call on a tensor whose memory was given back raises, where it would end
    the process, and so does asking for a storage, to resize it: for code of the program that runs
    once more, at another time than its own.

    What a tensor tells without its elements, such as its shape, it goes on telling.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _STORAGES:
            raise RuntimeError("it handles the memory of a tensor itself")
        if name != "__get__":  # the name of all that asks for an attribute
            given = pytree.tree_leaves((args, kwargs))
            if any(isinstance(one, torch.Tensor) and is_released(one) for one in given):
                raise RuntimeError("the memory of a tensor that it uses has been given back")
        if func in _PASSES:
            with self._inside_of_passes():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    def _inside_of_passes(self) -> Patched:
        """While a mode handles a call, torch takes it off; but a pass runs the program's code."""
        thread = threading.get_ident()

        def run(engine: Original, *args: Any, **options: Any) -> Any:
            # Another thread of the program may make a call of its own meanwhile.
            with self if threading.get_ident() == thread else nullcontext():
                return engine(*args, **options)

        return by_way_of(torch.autograd, "_engine_run_backward", run)


_STORAGES = frozenset(["storage", "untyped_storage", "_typed_storage"])
_PASSES = (torch.autograd.grad, torch.autograd.backward)


def one_number(value: Any) -> float | None:
    """A loss, or a setting such as the rate of an optimizer, where it is one number; it may be a
    tensor."""
    if isinstance(value, torch.Tensor) and is_small(value, 1) and value.numel():
        value = value.item()
    return float(value) if isinstance(value, Real) else None
