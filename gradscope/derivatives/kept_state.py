"""What code of the program can change besides tensors: variables around it, attributes, containers.

Kept before that code runs once more at another time than its own, and put back afterwards.  Knows
nothing of torch's operations, nor of what runs.
"""

from __future__ import annotations

import builtins
import itertools
import operator
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from gradscope.filesystem import is_installed, is_standard

MOST_KEPT = 10_000
"""Things that are gone through: functions, containers, objects, and what is in them."""

_SEQUENCES = (list, deque)
_CONTAINERS = (*_SEQUENCES, dict, set, Counter, OrderedDict, defaultdict)
"""Of these very types; to copy what is derived of them might run code of the program."""


def filled(function: FunctionType) -> Iterator[tuple[CellType, Any]]:
    """The variables around a function that have a value, with that."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # one that has none yet
            yield cell, cell.cell_contents


class KeptState:
    """What the methods of some classes can change, as it is now.

    Args:
        owners: the classes, whose attributes are kept; with the global variables, and those around
            a function, that their methods name, or functions that they name in turn.
        things: these, and what is in the containers and objects among all that.
    """

    def __init__(self, owners: Iterable[type], things: Iterable[Any]) -> None:
        self._puts_back: list[Callable[[], None]] = []
        # What is nearest comes first.
        self._waiting: deque[Any] = deque()
        # The things themselves: a number of one that is gone would be given to another.
        self._met: dict[int, Any] = {}
        for owner in owners:
            self._take_class(owner)
        self._waiting.extend(things)
        self._take_all()

    def put_back(self) -> None:
        """Make it what it was, where it is something else."""
        for put_back in reversed(self._puts_back):
            put_back()

    def _take_class(self, owner: type) -> None:
        self._waiting += [one for one in owner.__bases__ if _is_own(one)]
        names = {name: one for name, one in vars(owner).items() if not name.startswith("__")}
        self._waiting.extend(names.values())

        def put_back() -> None:
            for name in [one for one in vars(owner) if one not in names]:
                if not name.startswith("__"):
                    type.__delattr__(owner, name)
            for name, value in names.items():
                if vars(owner).get(name) is not value:
                    type.__setattr__(owner, name, value)

        self._puts_back.append(put_back)

    def _take_all(self) -> None:
        while self._waiting and len(self._met) < MOST_KEPT:
            thing = _unwrapped(self._waiting.popleft())
            if id(thing) in self._met:
                continue
            self._met[id(thing)] = thing
            attributes = _attributes_of(thing)
            if type(thing) is FunctionType:
                self._take_function(thing)
            elif type(thing) is tuple:
                self._waiting += itertools.islice(thing, MOST_KEPT)
            elif type(thing) in _CONTAINERS:
                self._take_container(thing)
            elif issubclass(type(thing), type) and _is_own(thing):
                self._take_class(thing)
            elif attributes is not None:
                self._waiting += [type(thing)]
                self._take_container(attributes)

    def _take_function(self, function: FunctionType) -> None:
        if is_installed(function.__code__.co_filename):
            return
        variables = function.__globals__
        # `co_names` has the attributes besides the globals: one of that name is kept for nothing.
        names = {name for code in _codes_in(function.__code__) for name in code.co_names}
        values = {name: variables[name] for name in names if name in variables}
        cells = list(filled(function))
        self._waiting += [*values.values(), *(value for _, value in cells)]
        self._waiting += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]

        def put_back() -> None:
            # Another thread may set others: what nobody has changed is left alone.
            for name, value in values.items():
                if variables.get(name) is not value:
                    variables[name] = value
            for cell, value in cells:
                cell.cell_contents = value

        self._puts_back.append(put_back)

    def _take_container(self, container: Any) -> None:
        content = container.copy()
        inside = content.values() if isinstance(content, dict) else content
        self._waiting += itertools.islice(inside, MOST_KEPT)

        def put_back() -> None:
            if not _is_same(container, content):
                container.clear()
                (container.extend if type(content) in _SEQUENCES else container.update)(content)

        self._puts_back.append(put_back)


def _is_own(owner: type) -> bool:
    """Whether a class is the program's, and no part of an installed package or of python."""
    module = sys.modules.get(str(vars(owner).get("__module__", "builtins")))
    file = getattr(module, "__file__", None) or ""
    return module is not builtins and not is_installed(file) and not is_standard(file)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two containers hold the same things; no code of the program is asked whether they
    are equal."""
    if type(one) is set:  # in which order it is gone through a copy need not say
        return {*map(id, one)} == {*map(id, other)}
    if len(one) != len(other) or not all(map(operator.is_, one, other)):
        return False
    return not isinstance(one, dict) or all(map(operator.is_, one.values(), other.values()))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    waiting = [code]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]


def _unwrapped(thing: Any) -> Any:
    """The function that is in a method, or in what a decorator has made of one."""
    while type(thing) in (staticmethod, classmethod, MethodType):
        thing = thing.__func__
    while type(thing) is FunctionType and "__wrapped__" in vars(thing):
        thing = vars(thing)["__wrapped__"]
    return thing


def _attributes_of(thing: Any) -> Any:
    """Those of an object of a class that is neither a class itself nor a module; None without any.
    No code of the program is asked for them."""
    if issubclass(type(thing), (torch.Tensor, type, ModuleType, FunctionType)):
        return None
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None
