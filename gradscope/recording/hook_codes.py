"""The hooks of the program, by their code.

A traceback tells the code of a hook that has raised, not the function object; so the code leads
back to the line that registered it. Holds code, never what a hook has in its closure.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

import torch

MAX_CODES = 5_000
"""Pieces of code that are remembered."""


class KnownHook(NamedTuple):
    """How a hook was registered: by which function, at which place."""

    function: str
    place: int


class HookCodes:
    """The hooks that were registered so far."""

    def __init__(self) -> None:
        self._known: dict[CodeType, KnownHook] = {}

    def note(self, arguments: Iterable[Any], function: str, place: int) -> None:
        """The program registers a hook, which is one of these arguments."""
        if len(self._known) < MAX_CODES:
            for code in (code for one in arguments for code in codes_of(one)):
                self._known[code] = KnownHook(function, place)

    def of(self, code: CodeType) -> KnownHook | None:
        """How the hook that runs this code was registered last; None where that was not seen."""
        return self._known.get(code)


def only_hook(*owners: Any) -> Any:
    """The only hook on a gradient that tensors or modules have; None where they have several."""
    tables = ("_backward_hooks", "_backward_pre_hooks")
    found = [getattr(one, table, None) or {} for one in owners for table in tables]
    if any(isinstance(one, torch.nn.Module) for one in owners):
        # Those of all modules, which are called as well.
        found += [getattr(torch.nn.modules.module, f"_global{table}", {}) for table in tables]
    # A leaf is held by its variable, too.
    hooks = list({id(hook): hook for some in found for hook in some.values()}.values())
    return hooks[0] if len(hooks) == 1 else None


def codes_of(hook: Any) -> Iterator[CodeType]:
    """The code of something that can be called, and of what it hands its call on to."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    hook = getattr(hook, "__func__", hook)
    code = getattr(hook, "__code__", None)
    if not isinstance(code, CodeType):
        # An object of a class of the program; what is no hook at all has no such method of python.
        called = getattr(type(hook).__call__, "__code__", None) if callable(hook) else None
        if isinstance(called, CodeType):
            yield called
        return
    yield code
    # A decorated hook, and torch's own for several tensors, have the program's in their closure.
    for cell in getattr(hook, "__closure__", None) or ():
        inner = getattr(_content(cell), "__func__", _content(cell))
        if isinstance(getattr(inner, "__code__", None), CodeType):
            yield inner.__code__


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None
