"""Functions of torch with ours in their place while a program is recorded.

Some are private.  Two of these are used where what torch offers instead costs every call several
times as much: global hooks of modules, for which torch goes a longer way around each, and the block
in which it takes a mode off, made of a generator.  Knows nothing of what is remembered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _device

from gradscope.autograd import packing
from gradscope.autograd.isolation import pop_mode, push_mode
from gradscope.autograd.saved import IS_TOLD
from gradscope.patched import Original, Patched

_DYNAMO = "torch._dynamo"


def module_calls(around: Callable[[Original], Original]) -> Patched:
    """For the method that all calls of modules go through."""
    name = "unpatched_nn_module_call_impl"
    taken = ((f"{_DYNAMO}.utils", name), (f"{_DYNAMO}.variables.nn_module", name))
    return Patched(nn.Module, "_call_impl", lambda one: functools.wraps(one)(around(one)), taken)


def mode_popping() -> Patched:
    """For the block in which a function of torch that is written in python calls a mode."""
    name = "_pop_mode_temporarily"
    taken = ((f"{_DYNAMO}.polyfills.torch_c_nn", name),)
    return Patched(torch.overrides, name, lambda _: _ModePopped, taken)


def default_devices(own: TorchFunctionMode) -> Patched:
    """For what ``set_default_device`` asks to find the bottom of the modes, below which it goes.

    There lies ``own``, unknown to the program.  What is put below it comes off the top in its place
    at the end of a ``with torch.device(...)`` in which it was set.
    """

    def around(original: Original) -> Original:
        def above_own() -> int:
            height = int(original())
            return height - (height > 0 and torch._C._get_function_stack_at(0) is own)

        return above_own

    return Patched(_device, "_len_torch_function_stack", around)


def saved_tensor_hooks() -> tuple[Patched, ...]:
    """For what puts saved-tensor hooks up and takes them away: none where torch itself tells that a
    tensor was packed."""
    if IS_TOLD:
        return ()

    def after(note: Callable[[], None]) -> Callable[[Original], Original]:
        def around(original: Original) -> Original:
            def called(*args: Any) -> Any:
                out = original(*args)
                note()
                return out

            return called

        return around

    owner = torch._C._autograd
    return (
        Patched(owner, "_push_saved_tensors_default_hooks", after(packing.push)),
        Patched(owner, "_pop_saved_tensors_default_hooks", after(packing.pop)),
    )


class _ModePopped:
    """Takes the uppermost mode off while the block runs, as torch's generator of this name does."""

    __slots__ = ("_mode",)

    def __enter__(self) -> TorchFunctionMode:
        mode = self._mode = pop_mode()
        return mode

    def __exit__(self, *_: object) -> None:
        push_mode(self._mode)
