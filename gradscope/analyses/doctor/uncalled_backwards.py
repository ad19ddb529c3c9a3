"""Modules of the program that define a ``backward``, which autograd never calls.

Only an ``autograd.Function`` has one that counts.  Nothing is asked of a module but its class, and
of the method its code: whether it goes by the gradient, and whether anybody may have called it.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from torch import nn

from gradscope.analyses.doctor.hook_codes import HookCodes
from gradscope.recording.places import Places

MAX_CLASSES = 5_000
"""Classes of modules that are remembered."""

_OF_A_GRADIENT = ("grad", "upstream", "dout", "d_out", "delta", "cotangent")
"""What the name of an argument that is a gradient has in it; an engine's ``backward`` takes a loss,
and a flow's the values that it turns back."""

_SENDING = frozenset(["backward", "grad", "autograd"])
"""What a method names that itself makes a backward call, or fills gradients by hand."""

_SEEING_TO_IT = frozenset(["apply", "register_hook", "register_full_backward_hook"])
"""What a forward names that has a Function or a hook change the gradient."""


class KnownBackward(NamedTuple):
    """A ``backward`` that a class of modules defines, and the name of that class."""

    code: CodeType
    name: str


class UncalledBackwards:
    """The methods that are still to be called."""

    def __init__(self, places: Places, hooks: HookCodes) -> None:
        self._places = places
        self._hooks = hooks
        self._seen: weakref.WeakSet[type] = weakref.WeakSet()
        self._found: dict[CodeType, KnownBackward] = {}
        self._is_passed_on = False

    def note_function(self, function: Any) -> None:
        """A custom Function was applied: its backward may call that of a module."""
        code = getattr(inspect.getattr_static(function, "backward", None), "__func__", None)
        self._is_passed_on |= "backward" in _names(getattr(code, "__code__", None))

    def look(self, modules: Iterable[nn.Module]) -> None:
        """These have run in the forward pass of a call of backward."""
        for module in modules:
            kind = type(module)
            if kind not in self._seen and len(self._seen) < MAX_CLASSES:
                self._seen.add(kind)
                code = self._backward_of(kind)
                if code is not None:
                    self._found.setdefault(code, KnownBackward(code, kind.__name__))

    def known(self) -> Iterator[KnownBackward]:
        """Those that nobody can have called so far."""
        for found in self._found.values():
            # What was called in the program's own course has made a call of torch; what a Function
            # or a hook calls runs inside of backward, where nobody listens.
            is_called = self._is_passed_on or self._hooks.mention("backward", found.code)
            if not is_called and not self._places.has_any_in(found.code):
                yield found

    def _backward_of(self, kind: type) -> CodeType | None:
        """The code of a class's ``backward``, if it takes a gradient and gives another."""
        method = _method(kind, "backward")
        if method is None or not self._places.is_own(method.__code__):
            return None
        # The first is the module; or the context, where it was written as that of a Function.
        given = list(inspect.signature(method).parameters.values())[1:]
        wanted = [one.name for one in given if one.default is one.empty]
        is_gradient = len(wanted) == 1 and any(word in wanted[0] for word in _OF_A_GRADIENT)
        if not is_gradient or not _names(method.__code__).isdisjoint(_SENDING):
            return None
        forward = _method(kind, "forward")
        is_seen_to = forward is not None and _names(forward.__code__) & _SEEING_TO_IT
        return None if is_seen_to else method.__code__


def _method(kind: type, name: str) -> FunctionType | None:
    # Not by `getattr`, which may run code of the program.
    found = inspect.getattr_static(kind, name, None)
    found = getattr(found, "__func__", found) if isinstance(found, staticmethod) else found
    return found if isinstance(found, FunctionType) else None


def _names(code: CodeType | None) -> set[str]:
    """The attributes and globals that some code names, and the functions inside of it."""
    names: set[str] = set()
    waiting = [code]
    while waiting:
        one = waiting.pop()
        if isinstance(one, CodeType):
            names.update(one.co_names)
            waiting += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
    return names
