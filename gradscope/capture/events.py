"""Torch calls that made no autograd node, or changed a tensor in place.

They matter when a gradient is missing or wrong.  Bounded memories of: leaves made, results without
history, and tensors changed in place.  Tensors are remembered weakly.  Knows nothing of graphs.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from gradscope.capture.source import Site

MAX_EVENTS = 20_000
"""Events of each sort that are remembered; the oldest are forgotten first."""

FEW = 1_000
"""Results without history, fewer than which are not searched for dead ones."""

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr

_MAKES_LEAF = {
    torch.Tensor.requires_grad.__set__,  # type: ignore[attr-defined]
    torch.Tensor.requires_grad_,
}


class InPlace(NamedTuple):
    """A tensor changed in place: its storage, when (sequence number), by what and where."""

    storage: int
    sequence: int
    function: str
    site: Site | None


class Made(NamedTuple):
    """A tensor without a grad_fn: a leaf, or a result that carries no history, and where it was
    made."""

    tensor: weakref.ref[torch.Tensor]
    site: Site | None
    function: str
    grad_enabled: bool
    had_history: bool


class Events:
    """What happened besides the graph."""

    def __init__(self) -> None:
        self.in_place: deque[InPlace] = deque(maxlen=MAX_EVENTS)
        self._plain: deque[Made] = deque(maxlen=MAX_EVENTS)
        self._many = FEW
        self._leaves: dict[int, Made] = {}
        self._changes: dict[Any, bool] = {}

    def changes(self, func: Any, kwargs: dict[str, Any]) -> bool:
        """Whether a call changes a tensor in place; for most calls this is one dict lookup."""
        # Keyed by the function itself: asking each for its name would cost more than the lookup.
        known = self._changes.get(func)
        if known is None:
            known = self._changes[func] = func not in _MAKES_LEAF and _is_in_place(_name(func))
        return known or bool(kwargs and (kwargs.get("inplace") or kwargs.get("out") is not None))

    def note_change(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
    ) -> None:
        """Remember the tensors that a call has changed."""
        # By torch's convention a function whose name ends in _ changes its first argument.
        changed = (kwargs["out"],) if kwargs.get("out") is not None else args[:1]
        self.note_changed(tensors_in(changed), _name(func), site)

    def note_changed(
        self, tensors: Iterable[torch.Tensor], function: str, site: Site | None
    ) -> None:
        """Remember that these tensors have just been changed."""
        now = _sequence()
        for tensor in tensors:
            storage = storage_of(tensor)
            if storage:
                self.in_place.append(InPlace(storage, now, function, site))

    def note_result(
        self, func: Any, args: tuple[Any, ...], out: Any, find_site: Callable[[], Site | None]
    ) -> None:
        """Look at the result of a call that made no node and changed nothing."""
        if func in _MAKES_LEAF:
            self._note_leaf(func, args[0], find_site())
        elif not isinstance(out, torch.Tensor):
            return
        elif not out.requires_grad:
            history = any(tensor.requires_grad for tensor in tensors_in(args))
            enabled = torch.is_grad_enabled()
            self._plain.append(Made(weakref.ref(out), find_site(), _name(func), enabled, history))
        elif out.is_leaf:
            self._note_leaf(func, out, find_site())

    def made(self, tensor: torch.Tensor) -> Made | None:
        """How a tensor without a grad_fn came to be, the latest first."""
        # An id may have been given to another object since; the weak reference tells.
        leaf = self._leaves.get(id(tensor))
        if leaf is not None and leaf.tensor() is tensor:
            return leaf
        return next((made for made in reversed(self._plain) if made.tensor() is tensor), None)

    def forget_dead(self) -> None:
        """Forget the results without history that are gone, once there are twice as many."""
        if len(self._plain) > self._many:
            living = (made for made in self._plain if made.tensor() is not None)
            self._plain = deque(living, maxlen=MAX_EVENTS)
            self._many = max(FEW, 2 * len(self._plain))

    def leaf_sites(self) -> dict[int, Site]:
        """Where each leaf that still lives was made, by ``id`` of the tensor."""
        return {
            key: made.site
            for key, made in self._leaves.items()
            if made.site is not None and made.tensor() is not None
        }

    def has_leaves(self) -> bool:
        """Whether a leaf that was made still lives."""
        return any(made.tensor() is not None for made in self._leaves.values())

    def _note_leaf(self, func: Any, tensor: torch.Tensor, site: Site | None) -> None:
        if not (tensor.requires_grad and tensor.is_leaf):
            return
        known = self._leaves.get(id(tensor))
        if known is None or known.tensor() is not tensor:
            self._leaves[id(tensor)] = Made(weakref.ref(tensor), site, _name(func), True, False)
        if len(self._leaves) > MAX_EVENTS:
            # Dictionaries keep their order, so the first key is the oldest.
            del self._leaves[next(iter(self._leaves))]


def tensors_in(arguments: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors among call arguments, also one level down in lists and tuples."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif isinstance(argument, (list, tuple)):
            yield from (item for item in argument if isinstance(item, torch.Tensor))


def storage_of(tensor: torch.Tensor) -> int:
    """The address of the memory behind a tensor; 0 where there is none to speak of."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return 0
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return 0
    return tensor.untyped_storage().data_ptr()


def _is_in_place(name: str) -> bool:
    return (name.endswith("_") and not name.endswith("__")) or name in _IN_PLACE_OPERATORS


_IN_PLACE_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"),
        *("iand", "ior", "ixor", "ilshift", "irshift"),
    )
)


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", func))
