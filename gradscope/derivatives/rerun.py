"""Running code of the program once more so that the program does not notice.

Knows nothing of derivatives or graphs.
"""

from __future__ import annotations

import dis
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from types import CodeType
from typing import Any

import torch

from gradscope.autograd.elements import MemoryLeftAlone
from gradscope.autograd.isolation import grads_preserved, random_kept


def is_restorable(function: Any) -> bool:
    """Whether whatever forward and backward leave behind is what :func:`preserved` puts back."""
    codes = codes_of(function)
    return bool(codes) and not any(_rebinds_around(code) for code in codes)


def codes_of(function: Any) -> list[CodeType]:
    """The code of a custom Function's forward and backward; none of torch's own, or of C."""
    if function.__module__.startswith("torch."):
        return []
    methods = [getattr(function, name, None) for name in ("forward", "backward")]
    # `once_differentiable` wraps a backward, and the code of the wrapper tells nothing of it.
    codes = [getattr(getattr(one, "__wrapped__", one), "__code__", None) for one in methods]
    return [code for code in codes if code is not None] if all(codes) else []


def _rebinds_around(code: CodeType) -> bool:
    stored = (step.argval for step in dis.get_instructions(code) if step.opname == "STORE_DEREF")
    return any(name in code.co_freevars for name in stored)


@contextmanager
def warnings_ignored() -> Iterator[None]:
    """Warnings in the block are not shown.

    By a filter of ours among those of the program, and not by ``catch_warnings``: python then takes
    all filters for new, and shows the program's later warnings once more at places where it has
    shown them.  What a module that is first imported in the block wants to be shown or not holds
    from then on, as it would in the program.
    """
    # As python keeps them: the action, patterns of the message and the module, and the line.
    own: Any = ("ignore", None, Warning, None, 0)
    filters: Any = warnings.filters
    filters.insert(0, own)
    try:
        yield
    finally:
        filters[:] = [one for one in filters if one is not own]


@contextmanager
def unnoticed(functions: Iterable[Any]) -> Iterator[None]:
    """Calls of these custom Functions may be made again in the block, and the program finds nothing
    changed by it."""
    # A tensor that retains its gradient would be given ours, and a backward may call backward.
    custom, nowhere = list(functions), io.StringIO()
    # Where no code of the program runs, what is read was asked before.
    released = MemoryLeftAlone() if custom else nullcontext()
    with (
        random_kept(),
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        # The program may have switched grad mode off where we happen to be.
        torch.enable_grad(),
        warnings_ignored(),
        preserved(custom),
        grads_preserved(),
        released,
    ):
        yield


@contextmanager
def preserved(functions: Iterable[Any]) -> Iterator[None]:
    """What custom Functions keep on their class or in global variables is as it was afterwards."""
    kept = [_kept(owner, names) for one in functions for owner, names in _state_of(one)]
    try:
        yield
    finally:
        for put_back in reversed(kept):
            put_back()


def _state_of(function: Any) -> Iterator[tuple[Any, list[str]]]:
    yield function, [name for name in vars(function) if not name.startswith("__")]
    for method in (function.forward, function.backward):
        method = getattr(method, "__wrapped__", method)
        code = method.__code__
        # `co_names` has the attributes besides the globals: one of that name is kept for nothing.
        yield method.__globals__, [name for name in code.co_names if name in method.__globals__]


def _kept(owner: Any, names: list[str]) -> Callable[[], None]:
    """Keep the values of some names, and what is in those that are containers; what is returned
    puts them back."""
    variables = owner if isinstance(owner, dict) else vars(owner)
    values = {name: variables[name] for name in names}
    # Not subclasses: to copy one might run code of the program.
    contents = [(one, one.copy()) for one in values.values() if type(one) in (list, dict, set)]

    def put_back() -> None:
        if isinstance(owner, dict):
            owner.update(values)
        else:
            for name in set(vars(owner)) - set(values):
                if not name.startswith("__"):
                    delattr(owner, name)
            for name, value in values.items():
                if vars(owner).get(name) is not value:
                    setattr(owner, name, value)
        for value, content in contents:
            value.clear()
            (value.extend if isinstance(value, list) else value.update)(content)

    return put_back
