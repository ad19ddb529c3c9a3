"""Tensors of the program, asked so that they always answer, and remembered without being held.

A program may hold tensors that python cannot be asked about: views that torch has forbidden, memory
that was given back, shells of a transform that has ended.  Everything that looks at a tensor which
it did not make itself asks here.  Knows nothing of graphs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import torch

from gradscope.patched import Original, by_way_of

Known = TypeVar("Known")
Other = TypeVar("Other")

storage_number: Callable[[torch.Tensor], int] | None = getattr(torch._C, "_storage_id", None)
"""As :func:`key_of`, asked of a tensor; None where torch does not tell."""

is_functorch_wrapped: Callable[[torch.Tensor], bool] = (
    torch._C._functorch.is_functorch_wrapped_tensor
)

# ---------------------------------------------------------------------- its history


def grad_fn_of(tensor: torch.Tensor) -> Any:
    """The node that made a tensor, or None.

    A view that was made under ``no_grad``, and whose base has since been changed in place, raises
    when it is asked.  Torch forbids its use, so it is part of no graph.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def is_leaf_tensor(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf; a forbidden view is none."""
    try:
        return tensor.is_leaf
    except RuntimeError:
        return False


def requires_grad(tensor: torch.Tensor) -> bool:
    """Whether a tensor requires grad; a forbidden view does not."""
    try:
        return tensor.requires_grad
    except RuntimeError:
        return False


def is_learned_leaf(tensor: torch.Tensor) -> bool:
    """Whether this is a leaf that backward can bring a gradient."""
    return requires_grad(tensor) and is_leaf_tensor(tensor)


# ---------------------------------------------------------------------- its memory


def base_of(tensor: torch.Tensor) -> torch.Tensor:
    """What a tensor is a view of, or itself."""
    return tensor if tensor._base is None else tensor._base


def storage_of(tensor: torch.Tensor) -> int:
    """The number of a tensor's storage (:func:`key_of`); 0 where there is none to speak of."""
    if tensor.layout is not torch.strided or tensor.is_nested or is_functorch_wrapped(tensor):
        return 0
    # By the first no python object is made, which would live as long as the memory does.
    return storage_number(tensor) if storage_number else key_of(tensor.untyped_storage())


def key_of(storage: Any) -> int:
    """What tells one living storage from another.

    Not its address, which empty ones share, and which fake and meta tensors have none of."""
    return int(storage._cdata)


address_of: Callable[[torch.Tensor], int] = getattr(
    torch.Tensor, "const_data_ptr", torch.Tensor.data_ptr
)
"""Where the elements of a tensor begin; 0 where they are nowhere.  Raises RuntimeError where there
is no telling.  By the first name, where torch has it, nothing is copied that was to be copied
lazily."""


def dense_parts(tensor: torch.Tensor) -> tuple[list[torch.Tensor], str]:
    """The dense tensors that a tensor consists of, and why there are none, or ""."""
    # What a subclass wraps may be sparse, or wrap something itself.
    waiting, parts = [tensor], []
    while waiting:
        one = waiting.pop()
        inner = list(_components(one))
        waiting.extend(inner)
        if not inner and not has_storage(one):
            return [], f"a {type(one).__name__} of layout {str(one.layout).removeprefix('torch.')}"
        parts += [] if inner else [one]
    return parts, ""


def has_storage(tensor: torch.Tensor) -> bool:
    """Whether there is memory of its own behind a tensor."""
    if is_functorch_wrapped(tensor):
        return False
    return tensor.layout is torch.strided and torch._C._has_storage(tensor)


def _components(tensor: Any) -> Iterator[torch.Tensor]:
    """The tensors behind a sparse tensor or a tensor subclass that wraps others."""
    if tensor.layout is torch.sparse_coo:
        # The public names refuse a tensor that is not coalesced.
        yield from (tensor._indices(), tensor._values())
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        yield from (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
    elif tensor.is_nested and tensor.layout is torch.strided:
        yield tensor.detach().values()
    elif hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        # A distributed tensor names its mesh of devices among them.
        inner = (getattr(tensor, name) for name in names)
        yield from (one for one in inner if isinstance(one, torch.Tensor))
    elif _is_hollow(tensor):
        held = (one for value in vars(tensor).values() for one in flat_tensors(value))
        yield from (one for one in held if one is not tensor)


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether a tensor is torch's own stand-in for one, which has no elements."""
    return type(tensor).__name__ == "FakeTensor"


def _is_hollow(tensor: torch.Tensor) -> bool:
    """Whether a tensor of a class of the program has elements by name only, and computes with what
    it holds."""
    # Older torch warns whoever asks a fake tensor where its elements are.
    if type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ or is_fake(tensor):
        return False
    try:
        # One whose memory was given back has a storage that is too small.
        return not address_of(tensor) and tensor.untyped_storage().nbytes() >= tensor.nbytes > 0
    except RuntimeError:
        return False


def flat_tensors(*containers: Any) -> list[torch.Tensor]:
    """The tensors in call arguments or results, also three levels down in lists, tuples and
    dicts."""
    found: list[torch.Tensor] = []
    level: Sequence[Any] = containers
    # Every call of torch comes by here, most of whose arguments are tensors and numbers.
    tensor = torch.Tensor
    for _ in range(4):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, tensor):
                found.append(item)
            elif item is None or type(item) is int or type(item) is float:
                continue
            # Not by an `__iter__` or a `values` of the program's: torch does without them as well.
            elif isinstance(item, list):
                deeper.extend(list.__iter__(item))
            elif isinstance(item, tuple):
                deeper.extend(tuple.__iter__(item))
            elif isinstance(item, dict):
                deeper.extend(dict.values(item))
        if not deeper:
            break
        level = deeper
    return found


# ---------------------------------------------------------------------- remembering it


class TensorRef(weakref.ref[torch.Tensor]):
    """A weak reference of ours to a tensor of the program; see :func:`allow_swaps`."""

    __slots__ = ()

    # Before that, torch empties a tensor that nobody in python had held as soon as it lets it go,
    # also one that was got here in between.  This tells torch that python holds it again.
    if torch.__version__ < "2.11":

        def __call__(self) -> torch.Tensor | None:
            """The tensor; None where it is gone."""
            tensor = super().__call__()
            if tensor is not None:
                torch.Tensor._fix_weakref(tensor)  # type: ignore[attr-defined]
            return tensor


def living(references: Iterable[TensorRef]) -> list[torch.Tensor]:
    """The tensors that are still there."""
    return [tensor for tensor in (one() for one in references) if tensor is not None]


class TensorTable(Generic[Known]):
    """What is known of some tensors, by identity; holds none of them.

    Args:
        most: entries that are kept; beyond it the oldest is forgotten first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[int, tuple[TensorRef, Known]] = {}

    def __setitem__(self, tensor: torch.Tensor, known: Known) -> None:
        # An entry that is written again becomes the youngest.
        self._entries.pop(id(tensor), None)
        self._entries[id(tensor)] = (TensorRef(tensor), known)
        if len(self._entries) > self._most:
            del self._entries[next(iter(self._entries))]

    def get(self, tensor: object, otherwise: Other = None) -> Known | Other:  # type: ignore[assignment]
        """What is known of this very tensor; ``otherwise`` where nothing is."""
        # An id may have been given to another object since; the reference tells.
        entry = self._entries.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else otherwise

    def get_all(self, tensors: Iterable[object]) -> list[Known | None]:
        """As :meth:`get` of each of these."""
        return [self.get(tensor) for tensor in tensors]

    def __contains__(self, tensor: object) -> bool:
        entry = self._entries.get(id(tensor))
        return entry is not None and entry[0]() is tensor

    def __len__(self) -> int:
        return len(self._entries)

    def living(self) -> Iterator[tuple[torch.Tensor, Known]]:
        """The tensors that still live, the oldest entry first."""
        for reference, known in list(self._entries.values()):
            tensor = reference()
            if tensor is not None:
                yield tensor, known

    def forget_dead(self) -> None:
        """Drop the entries of tensors that are gone."""
        self._entries = {key: one for key, one in self._entries.items() if one[0]() is not None}

    def forget(self, tensor: torch.Tensor) -> None:
        self._entries.pop(id(tensor), None)

    def clear(self) -> None:
        self._entries.clear()


def allow_swaps(rememberer: object) -> None:
    """Let the program swap tensors that we remember, as long as ``rememberer`` lives.

    ``torch.utils.swap_tensors``, which ``module.to()`` may use, refuses tensors that have weak
    references: those would show other contents afterwards.  Ours mean the python object, which
    stays the program's parameter whatever it contains.  So they are not counted.
    """
    _swaps.start()
    weakref.finalize(rememberer, _swaps.stop).atexit = False


_swapping = threading.RLock()


def _swap_tensors(original: Original, t1: torch.Tensor, t2: torch.Tensor) -> Any:
    # A global of torch's is changed for a moment: of two threads one would undo the other's.
    with _swapping, _own_references_hidden(original):
        return original(t1, t2)


_swaps = by_way_of(torch.utils, "swap_tensors", _swap_tensors)


@contextmanager
def _own_references_hidden(function: Any) -> Iterator[None]:
    """While the block runs, a function of torch does not find our references."""
    names = getattr(function, "__globals__", {})
    # The name in torch's module, and not the function in `weakref`, which the program may call.
    asked = names.get("weakref")
    names["weakref"] = SimpleNamespace(getweakrefs=_references_of_others)
    try:
        yield
    finally:
        names["weakref"] = asked


def _references_of_others(tensor: torch.Tensor) -> list[Any]:
    return [one for one in weakref.getweakrefs(tensor) if type(one) is not TensorRef]
