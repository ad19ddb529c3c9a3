"""A function of torch in whose place another stands for a while.

Two are private, and are used where what torch offers instead costs every call several times as
much: global hooks of modules, for which torch goes a longer way around each, and the block in which
it takes a mode off, made of a generator.  Knows nothing of what is remembered.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from gradscope.autograd import packing
from gradscope.autograd.isolation import pop_mode, push_mode
from gradscope.autograd.saved import IS_TOLD

Original = Callable[..., Any]
"""What torch itself does."""

_DYNAMO = "torch._dynamo"


class StandIn:
    """Stands in the place of a function while it is started.

    Args:
        owner, name: where torch has its function.
        around: makes of that what stands there.
        taken: modules that take what is there when they are imported, with their names of it.
    """

    def __init__(
        self,
        owner: Any,
        name: str,
        around: Callable[[Original], Original],
        taken: tuple[tuple[str, str], ...],
    ) -> None:
        self._owner, self._name, self._around, self._taken = owner, name, around, taken
        self._original: Original | None = None
        self._ours: Original | None = None

    @property
    def is_started(self) -> bool:
        """Whether it stands there."""
        return self._ours is not None

    def start(self) -> None:
        """From now on."""
        original = self._original = getattr(self._owner, self._name, None)
        if original is not None:  # another version of torch
            self._ours = self._around(original)
            setattr(self._owner, self._name, self._ours)

    def stop(self) -> None:
        """Put torch's function back; where the program has put another around ours, that stays."""
        taken = ((sys.modules.get(module), name) for module, name in self._taken)
        for owner, name in ((self._owner, self._name), *taken):
            if self._ours is not None and getattr(owner, name, None) is self._ours:
                setattr(owner, name, self._original)
        self._ours = self._original = None


def module_calls(around: Callable[[Original], Original]) -> StandIn:
    """For the method that all calls of modules go through."""
    name = "unpatched_nn_module_call_impl"
    taken = ((f"{_DYNAMO}.utils", name), (f"{_DYNAMO}.variables.nn_module", name))
    return StandIn(nn.Module, "_call_impl", lambda one: functools.wraps(one)(around(one)), taken)


def mode_popping() -> StandIn:
    """For the block in which a function of torch that is written in python calls a mode."""
    name = "_pop_mode_temporarily"
    taken = ((f"{_DYNAMO}.polyfills.torch_c_nn", name),)
    return StandIn(torch.overrides, name, lambda _: _ModePopped, taken)


def saved_tensor_hooks() -> tuple[StandIn, ...]:
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
        StandIn(owner, "_push_saved_tensors_default_hooks", after(packing.push), ()),
        StandIn(owner, "_pop_saved_tensors_default_hooks", after(packing.pop), ()),
    )


class _ModePopped:
    """As torch's own."""

    __slots__ = ("_mode",)

    def __enter__(self) -> TorchFunctionMode:
        mode = self._mode = pop_mode()
        return mode

    def __exit__(self, *_: object) -> None:
        push_mode(self._mode)
