"""Running code of the program once more so that the program does not notice.

Knows nothing of derivatives or graphs.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, cast

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from gradscope.autograd.elements import MemoryLeftAlone
from gradscope.autograd.isolation import functions_off, functions_on, grads_preserved, random_kept
from gradscope.derivatives.kept_state import KeptState, filled

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
