"""One call of the program as it stands on the tape, and whether it can be made again.

Knows nothing of how calls come on the tape.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradscope.derivatives.rerun import codes_of, is_restorable
from gradscope.derivatives.slots import TapeSlot, is_usable

HOOKED = torch.nn.modules._functions.BackwardHookFunction
"""The identity that torch puts around a module with backward hooks."""


HIDDEN = "is torch's own and hides what it runs"
"""Why some of torch's Functions cannot be made again."""


@dataclass(eq=False)
class Call:
    """One call that made history, as it was made.

    ``leaves`` are its arguments flattened, each tensor replaced by its slot; ``results`` are the
    slots of the flattened result, None for what carries no history; ``changed`` the slot of an
    operand that it changed in place.  ``inputs`` are the operands that carried history.  Its nodes
    have the sequence numbers ``first <= n < end``.  ``random`` is the random state before it, where
    it drew numbers.  ``problem`` says why it cannot be made again.
    """

    function: Any
    leaves: list[Any]
    spec: pytree.TreeSpec
    inputs: list[TapeSlot]
    place: int = -1
    first: int = 0
    end: int = 0
    results: list[TapeSlot | None] = field(default_factory=list)
    changed: TapeSlot | None = None
    random: torch.Tensor | None = None
    random_on: dict[torch.device, torch.Tensor] = field(default_factory=dict)
    problem: str = ""

    @property
    def custom(self) -> Any:
        """The custom Function that it applies; None for a built-in call."""
        owner = getattr(self.function, "__self__", None)
        is_function = isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
        return owner if is_function else None

    @property
    def name(self) -> str:
        """What was called, in a word."""
        if self.custom is not None:
            return str(self.custom.__name__)
        name = str(getattr(self.function, "__name__", self.function))
        owner = getattr(self.function, "__self__", None)
        return str(getattr(owner, "__name__", name)) if name in ("__get__", "__set__") else name

    @property
    def is_torchs(self) -> bool:
        """Whether torch itself holds the derivative: no custom Function, nor an operation that a
        library has registered with a backward of its own."""
        module = getattr(self.function, "__module__", None) or "torch"
        library = module.removeprefix("torch._ops.")
        is_of_torch = module.partition(".")[0] == "torch" and library in (module, "aten", "prims")
        return is_of_torch and self.custom is None

    def option(self, name: str) -> Any:
        """What was given for a parameter; its default, and None where there is no such one."""
        args, kwargs = pytree.tree_unflatten(self.leaves, self.spec)
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except (TypeError, ValueError):  # C functions tell no signature
            return kwargs.get(name)
        bound.apply_defaults()
        return bound.arguments.get(name)

    @property
    def draws(self) -> bool:
        """Whether it drew random numbers."""
        return self.random is not None or bool(self.random_on)

    @property
    def is_backward(self) -> bool:
        """Whether it is a backward pass that left a graph."""
        return self.function is torch.autograd.grad

    def nodes(self, positions: Mapping[int, int]) -> tuple[int, ...]:
        """Those that it made of a graph whose nodes are known by their sequence numbers."""
        made = range(self.first, self.end)
        return tuple(sorted(positions[one] for one in made if one in positions))

    @property
    def slots(self) -> Iterator[TapeSlot]:
        """The operands, in the order of the arguments."""
        return (one for one in self.leaves if isinstance(one, TapeSlot))


def is_tensor(thing: Any) -> bool:
    """Whether an argument or a result is a tensor."""
    return isinstance(thing, torch.Tensor)


def problem_of(func: Any, leaves: list[Any]) -> str:
    """Why a call could not be made again; "" when it can."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        if owner is not HOOKED and not codes_of(owner):
            return f"{owner.__name__} {HIDDEN}"
        if owner is not HOOKED and not is_restorable(owner):
            return "its code changes variables around it"
    if any(is_tensor(one) and not is_usable(one) for one in leaves):
        return "it takes a tensor that is sparse, nested or of a class of its own"
    if any(isinstance(one, torch.Generator) for one in leaves):
        return "it draws from a generator of its own"
    if any(isinstance(one, torch.nn.Module) for one in leaves):
        return "it takes a module, which would be run again too"
    if any(map(_is_of_program, leaves)):
        return "it takes a function, which would be run again too"
    return ""


def _is_of_program(thing: Any) -> bool:
    """Whether it is a python function, a method or a partial of one, other than torch's own."""
    inner = getattr(thing, "func", thing) if isinstance(thing, functools.partial) else thing
    is_python = isinstance(inner, (types.FunctionType, types.MethodType))
    return is_python and not str(inner.__module__).startswith("torch.")
