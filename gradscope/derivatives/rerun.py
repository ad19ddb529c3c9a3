"""Running code of the program once more so that the program does not notice: what it can change
besides tensors, variables around it, attributes and containers, is kept before, and put back.

Knows nothing of derivatives or graphs.
"""

from __future__ import annotations

import builtins
import io
import itertools
import operator
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from gradscope.autograd.elements import MemoryLeftAlone
from gradscope.autograd.isolation import functions_off, functions_on, grads_preserved, random_kept
from gradscope.filesystem import is_installed, is_standard

FEW_WRITTEN = 64
"""Tensors that were written into, after which the copies of those that are gone are let go."""

_STATISTICS = ("running_mean", "running_var")


def moves_iterator(function: Any) -> bool:
    """Whether forward or backward of a custom Function names an iterator, such as an open file,
    which cannot be put back to where it was."""
    found = [*vars(function).values()]
    for method in (inner(getattr(function, name, None)) for name in ("forward", "backward")):
        if isinstance(method, FunctionType):
            found += [method.__globals__.get(name) for name in method.__code__.co_names]
            found += [value for _, value in filled(method)]
    return any(hasattr(type(one), "__next__") for one in found)


def codes_of(function: Any) -> list[CodeType]:
    """The code of a custom Function's forward and backward; none of torch's own, or of C."""
    if function.__module__.startswith("torch."):
        return []
    methods = [inner(getattr(function, name, None)) for name in ("forward", "backward")]
    codes = [getattr(one, "__code__", None) for one in methods]
    return [code for code in codes if code is not None] if all(codes) else []


def inner(method: Any) -> Any:
    """The method itself of one that is wrapped, as ``once_differentiable`` wraps a backward: the
    code of the wrapper tells nothing of it."""
    return getattr(method, "__wrapped__", method)


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


class Writes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What torch's operations write into tensors while it is active, such as running statistics, to
    be undone, their versions with it.

    A copy of a tensor's memory is made when it is first written into, and held as long as that
    lives: what is made and changed meanwhile comes and goes.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._contents: dict[int, tuple[Any, Any]] = {}
        self._versions: Any = WeakIdKeyDictionary()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else torch would import its compiler, some 800 modules, for the first call that is seen.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for at, taken in enumerate(func._schema.arguments):
            # Of statistics that it writes an old operation does not say so.
            if taken.is_write or taken.name in _STATISTICS:
                written = args[at] if at < len(args) else kwargs.get(taken.name)
                # Where torch itself writes, in a backward, what we ask for the memory is heard.
                with functions_off():
                    for one in pytree.tree_leaves(written):
                        if isinstance(one, torch.Tensor) and one.layout is torch.strided:
                            self._keep(one)
        return func(*args, **kwargs)

    def _keep(self, tensor: torch.Tensor) -> None:
        storage, weak = cast(Any, tensor.untyped_storage()), cast(Any, StorageWeakRef)
        if storage._cdata not in self._contents:
            if len(self._contents) % FEW_WRITTEN == FEW_WRITTEN - 1:
                living = {at: one for at, one in self._contents.items() if not one[0].expired()}
                self._contents = living
            self._contents[storage._cdata] = weak(storage), storage.clone()
        # What is written into through a view is counted by all that share the memory.
        counted = tensor if tensor._base is None else tensor._base
        if not counted.is_inference():
            self._versions.setdefault(counted, counted._version)

    def undo(self) -> None:
        """Put back what was there before; a tensor that has another size since is left."""
        for written, content in self._contents.values():
            if not written.expired():
                storage: Any = torch.UntypedStorage._new_with_weak_ptr(written.cdata)
                if storage.nbytes() == content.nbytes():
                    storage.copy_(content)
        for tensor, version in self._versions.items():
            _set_version(tensor, version)


def _set_version(tensor: torch.Tensor, version: int) -> None:
    set_versions: Any = torch._C._autograd._unsafe_set_version_counter
    try:
        set_versions((tensor,), (version,))
    except TypeError:  # older versions of torch take one tensor
        set_versions(tensor, version)


_KEPT: ContextVar[tuple[Writes, KeptState] | None] = ContextVar("_KEPT", default=None)


def is_kept() -> bool:
    """Whether what custom Functions change now is put back."""
    return _KEPT.get() is not None


@contextmanager
def program_runs() -> Iterator[None]:
    """Around code of the program in a block of :func:`unnoticed`, and none of ours, which a mode
    would hide tensors from.  Each time it finds the same around it, but for tensors: those that it
    gives are not to be taken back."""
    kept = _KEPT.get()
    if kept is None:
        with functions_on():
            yield
        return
    writes, state = kept
    try:
        with functions_on(), writes:
            yield
    finally:
        state.put_back()


@contextmanager
def unnoticed(functions: Iterable[Any], arguments: Iterable[Any]) -> Iterator[None]:
    """Calls of these custom Functions may be made again in the block, with these arguments, and the
    program finds nothing changed by it."""
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
        state_put_back(custom, arguments),
        grads_preserved(),
        released,
    ):
        yield


@contextmanager
def state_put_back(functions: Collection[Any], things: Iterable[Any]) -> Iterator[None]:
    """What these custom Functions change in the block, around them, in ``things`` and, while
    :func:`program_runs`, in tensors, is as it was afterwards."""
    if not functions:
        yield
        return
    kept = Writes(), KeptState(functions, things)
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        kept[0].undo()
        kept[1].put_back()


# ---------------------------------------------------------------- what custom Functions keep


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
