"""Torch calls that made no autograd node, but matter when a gradient is missing or wrong.

Bounded memories of: leaves made, results without history, and tensors changed in place.  Tensors
are remembered weakly.  Knows nothing of graphs.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import torch

from gradscope.capture.source import Site

MAX_EVENTS = 20_000
"""Events of each sort that are remembered; the oldest are forgotten first."""

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr

Sort = Literal["plain", "in place", "requires grad"]

_SPECIAL: dict[Any, Sort] = {
    torch.Tensor.requires_grad.__set__: "requires grad",  # type: ignore[attr-defined]
    torch.Tensor.requires_grad_: "requires grad",
}


class InPlace(NamedTuple):
    """A tensor changed in place: its storage, its version after, when (sequence number), and
    where."""

    storage: int
    version: int
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
        self.plain: deque[Made] = deque(maxlen=MAX_EVENTS)
        self.leaves: dict[int, Made] = {}
        self._sorts: dict[Any, Sort] = dict(_SPECIAL)

    def note(
        self, func: Any, args: tuple[Any, ...], out: Any, find_site: Callable[[], Site | None]
    ) -> None:
        """Look at one call that has just returned; most are of no interest and cost one dict
        lookup."""
        sort = self._sorts.get(func)
        if sort is None:
            sort = self._sorts[func] = _sort_of(func)
        if sort == "plain":
            if isinstance(out, torch.Tensor):
                self._note_result(func, args, out, find_site())
        elif sort == "in place":
            self._note_in_place(func, args, find_site())
        else:
            self._note_leaf(func, args[0], find_site())

    def made(self, tensor: torch.Tensor) -> Made | None:
        """How a tensor without a grad_fn came to be, the latest first."""
        leaf = self.leaves.get(id(tensor))
        if leaf is not None and leaf.tensor() is tensor:
            return leaf
        return next((made for made in reversed(self.plain) if made.tensor() is tensor), None)

    def leaf_sites(self) -> dict[int, Site]:
        """Where each leaf that still lives was made, by ``id`` of the tensor."""
        return {
            key: made.site
            for key, made in self.leaves.items()
            if made.site is not None and made.tensor() is not None
        }

    def _note_result(
        self, func: Any, args: tuple[Any, ...], out: torch.Tensor, site: Site | None
    ) -> None:
        if out.requires_grad and out.is_leaf:
            self._note_leaf(func, out, site)
        elif not out.requires_grad:
            history = any(tensor.requires_grad for tensor in tensors_in(args))
            self.plain.append(
                Made(weakref.ref(out), site, _name(func), torch.is_grad_enabled(), history)
            )

    def _note_leaf(self, func: Any, tensor: torch.Tensor, site: Site | None) -> None:
        if not (tensor.requires_grad and tensor.is_leaf):
            return
        known = self.leaves.get(id(tensor))
        if known is None or known.tensor() is not tensor:
            self.leaves[id(tensor)] = Made(weakref.ref(tensor), site, _name(func), True, False)
        if len(self.leaves) > MAX_EVENTS:
            del self.leaves[next(iter(self.leaves))]

    def _note_in_place(self, func: Any, args: tuple[Any, ...], site: Site | None) -> None:
        now = _sequence()
        for tensor in tensors_in(args[:1]):
            if tensor.layout is torch.strided and not _wrapped(tensor):
                storage = tensor.untyped_storage().data_ptr()
                version = 0 if tensor.is_inference() else tensor._version
                self.in_place.append(InPlace(storage, version, now, _name(func), site))


def tensors_in(arguments: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors among call arguments, also one level down in lists and tuples."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif type(argument) in (list, tuple):
            yield from (item for item in argument if isinstance(item, torch.Tensor))


def _wrapped(tensor: torch.Tensor) -> bool:
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def _sort_of(func: Any) -> Sort:
    name = _name(func)
    changes = (name.endswith("_") and not name.endswith("__")) or name in _IN_PLACE_OPERATORS
    return "in place" if changes else "plain"


_IN_PLACE_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        [
            "setitem",
            "iadd",
            "isub",
            "imul",
            "itruediv",
            "ifloordiv",
            "imod",
            "ipow",
            "iand",
            "ior",
            "ixor",
            "ilshift",
            "irshift",
        ]
    )
)


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", func))
