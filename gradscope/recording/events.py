"""Torch calls that made no autograd node, or changed a tensor in place.

They matter when a gradient is missing or wrong.  Bounded memories of: leaves made, results without
history, and tensors changed in place.  Tensors are remembered weakly.  Knows nothing of graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from types import MethodType
from typing import Any, NamedTuple

import msgspec
import torch

from gradscope.autograd.nodes import sequence_number
from gradscope.autograd.tensors import (
    TensorTable,
    address_of,
    flat_tensors,
    is_learned_leaf,
    requires_grad,
    storage_of,
)
from gradscope.recording.source import Site
from gradscope.recording.torch_call import name_of_call

MAX_EVENTS = 20_000
"""Events of each sort that are remembered; the oldest are forgotten first."""

FEW = 1_000
"""Results without history, fewer than which are not searched for dead ones."""

MAKES_LEAF = {
    torch.Tensor.requires_grad.__set__,  # type: ignore[attr-defined]
    torch.Tensor.requires_grad_,
}


class InPlace(msgspec.Struct, frozen=True, gc=False):
    """A tensor changed in place: its storage, when (sequence number), by what and where, its
    version since then, -1 where torch counts none, and from and to which byte, where that is known.
    A ``function`` that changes what is its own says so: ``embedding: its weight in place
    (max_norm)``."""

    storage: int
    sequence: int
    function: str
    site: Site | None
    version: int = -1
    written: tuple[int, int] = (0, 0)


_HARMLESS = (
    "grad requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook "
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like "
    "new_zeros new_ones new_empty new_full new_empty_strided "
    "shape size repr format str len hash set_ __reduce_ex__ deepcopy"
)
HARMLESS = frozenset(_HARMLESS.split())
"""What these give is a shape, a text, a hook or a tensor of new content: nobody expects a gradient
to come back through them."""

_OF_FIRST = frozenset(["expand_as", "view_as", "reshape_as", "type_as", "to"])
"""What takes the elements of its first operand, and of another one only shape or dtype."""

_CHANGING = (
    "zero_ zeros_ fill_ copy_ normal_ uniform_ bernoulli_ random_ exponential_ cauchy_ geometric_ "
    "log_normal_"
)
_OVERWRITING = frozenset(_CHANGING.split())
"""What leaves nothing of the elements that it changes."""


def _contents(
    function: str, args: tuple[Any, ...], operands: list[torch.Tensor]
) -> list[torch.Tensor]:
    """The operands whose elements come into the result."""
    if function == "new":
        return []
    if function == "new_tensor":
        return flat_tensors(args[1:])
    return flat_tensors(args[:1]) if function in _OF_FIRST else operands


class TensorOrigin(NamedTuple):
    """How a tensor without a grad_fn was made: a leaf, or a result that carries no history."""

    site: Site | None
    function: str
    grad_enabled: bool
    had_history: bool


class Events:
    """What happened besides the graph."""

    def __init__(self) -> None:
        self.in_place: deque[InPlace] = deque(maxlen=MAX_EVENTS)
        self._plain: TensorTable[TensorOrigin] = TensorTable(MAX_EVENTS)
        self._many = FEW
        self.cut_off: TensorTable[TensorOrigin] = TensorTable(MAX_EVENTS)
        """Results whose elements were computed from what had a history, and what cut it."""
        self.walls: deque[tuple[int, int, TensorOrigin]] = deque(maxlen=MAX_EVENTS)
        """Sequence numbers of the first and the last node of a call, with what cut the history of
        what it took."""
        self._leaves: TensorTable[TensorOrigin] = TensorTable(MAX_EVENTS)
        self._changes: dict[Any, bool] = {}
        self.notes_bytes = False
        """Whether somebody asks which bytes a change in place has written."""

    def changes(self, func: Any, kwargs: dict[str, Any]) -> bool:
        """Whether a call changes a tensor in place; for most calls this is one dict lookup."""
        # Keyed by the function itself: asking each for its name would cost more than the lookup.
        if type(func) is MethodType:  # `apply` of a Function, whose class may come and go
            return False
        known = self._changes.get(func)
        if known is None:
            # The name of `requires_grad_` says that it changes something; no element is meant by
            # that.
            known = self._changes[func] = func not in MAKES_LEAF and _is_in_place(_name(func))
        # `F.relu(x, inplace=True)` and `out=` say by an argument what no name does.
        return known or bool(kwargs and (kwargs.get("inplace") or kwargs.get("out") is not None))

    def note_change(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        site: Site | None,
        is_inside: bool,
    ) -> None:
        """Remember the tensors that a call has changed; one inside of a custom Function is a part
        of what that computes, so that no bytes are told of it."""
        # By torch's convention a function whose name ends in _ changes its first argument.
        # `nn.init.constant_` and its like hand all of theirs over by name.
        first = args[:1] or tuple(kwargs.values())[:1]
        changed = (kwargs["out"],) if kwargs.get("out") is not None else first
        function = _name(func)

        def written(tensor: torch.Tensor) -> tuple[int, int]:
            if is_inside or not self.notes_bytes:
                return 0, 0
            return bytes_of(_part(tensor, args) if function == "__setitem__" else tensor)

        self.note_changed(flat_tensors(changed), function, site, written)
        if self.cut_off and function in _OVERWRITING:
            for tensor in flat_tensors(changed):
                self.cut_off.forget(tensor)

    def note_detached(self, tensor: torch.Tensor, site: Site | None) -> None:
        """A tensor that had a history has lost it in place."""
        self.cut_off[tensor] = TensorOrigin(site, "detach_", True, True)

    def note_changed(
        self,
        tensors: Iterable[torch.Tensor],
        function: str,
        site: Site | None,
        written: Callable[[torch.Tensor], tuple[int, int]] = lambda _: (0, 0),
    ) -> None:
        """Remember that these tensors have just been changed, and which bytes of each."""
        now = sequence_number()
        for tensor in tensors:
            storage = storage_of(tensor)
            # Sparse, nested and wrapped tensors have no one storage by which a change could be
            # found.
            if storage:
                version = -1 if tensor.is_inference() else tensor._version
                changed = InPlace(storage, now, function, site, version, written(tensor))
                self.in_place.append(changed)

    def edited_since(self, sequence: int) -> set[int]:
        """Storages changed since the node with this sequence number, by whatever call."""
        # They are in the order of time, and all before this one are older.
        recent = takewhile(lambda one: one.sequence >= sequence, reversed(self.in_place))
        return {change.storage for change in recent}

    def changes_since(self, made: int, version: int, memory: set[int]) -> Iterator[InPlace]:
        """The changes, in order, of what a node had saved.

        Args:
            made: the sequence number of the node.
            version: what it had saved was of this version, -1 where that is not known.  A call that
                changes a tensor in place saves what it has written, so that it is no change.
            memory: the storages of what it saved; none where they are not known.
        """
        # A view shares its base's memory, so a change of either is a change of both.
        for change in self.in_place:
            is_later = change.sequence > made and not -1 < change.version <= version
            if is_later and (not memory or change.storage in memory):
                yield change

    def note_result(
        self, func: Any, args: tuple[Any, ...], out: Any, find_site: Callable[[], Site | None]
    ) -> None:
        """Look at the result of a call that made no node and changed nothing."""
        # A setter returns nothing: what it has made a leaf is its operand.
        if func in MAKES_LEAF:
            self._note_leaf(func, args[0], find_site())
        elif not isinstance(out, torch.Tensor):
            found = flat_tensors(out)
            # Beside a result with history one without came of what had none.
            if found and not any(map(requires_grad, found)):
                site = find_site()
                for one in found:
                    self.note_plain(func, args, one, site)
        elif not requires_grad(out):
            self.note_plain(func, args, out, find_site())
        else:
            self._note_leaf(func, out, find_site())

    def note_plain(
        self, func: Any, args: tuple[Any, ...], out: torch.Tensor, site: Site | None
    ) -> None:
        """A call has given a tensor that does not require grad."""
        operands = flat_tensors(args)
        history = any(map(requires_grad, operands))
        made = TensorOrigin(site, name_of_call(func), torch.is_grad_enabled(), history)
        self._plain[out] = made
        # Nearly every result of a step is made of plain data alone.
        if not history and not self.cut_off:
            return
        if made.function in HARMLESS or not (out.is_floating_point() or out.is_complex()):
            return
        contents = _contents(made.function, args, operands)
        known = [made] if any(map(requires_grad, contents)) else self.cut_off.get_all(contents)
        cut = next(filter(None, known), None)
        if cut is not None:
            self.cut_off[out] = cut

    def note_taken(self, first: int, end: int, *given: Any) -> None:
        """A call made nodes from one sequence number to before another, of these arguments."""
        plain = [one for one in flat_tensors(*given) if not requires_grad(one)]
        cuts = (cut for cut in self.cut_off.get_all(plain) if cut is not None)
        self.walls.extend((first, end - 1, cut) for cut in cuts)

    def made(self, tensor: object) -> TensorOrigin | None:
        """How a tensor without a grad_fn came to be, the latest first."""
        return self._leaves.get(tensor) or self._plain.get(tensor)

    def forget_dead(self) -> None:
        """Forget the results without history that are gone, once there are twice as many."""
        if len(self._plain) > self._many:
            self._plain.forget_dead()
            self.cut_off.forget_dead()
            # Twice as many, so that a search costs no more than what was added since, however many
            # live.
            self._many = max(FEW, 2 * len(self._plain))

    def leaf_site(self, tensor: torch.Tensor) -> Site | None:
        """Where a leaf was made, as far as that was seen."""
        made = self._leaves.get(tensor)
        return None if made is None else made.site

    def has_leaves(self) -> bool:
        """Whether a leaf that was made still lives."""
        return any(True for _ in self._leaves.living())

    def _note_leaf(self, func: Any, tensor: torch.Tensor, site: Site | None) -> None:
        # The first line counts: to say `requires_grad_()` once more makes no leaf.
        if is_learned_leaf(tensor) and tensor not in self._leaves:
            self._leaves[tensor] = TensorOrigin(site, _name(func), True, False)


def _part(tensor: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
    """What ``tensor[index] = value`` writes to; all of it where the index is not a plain one."""
    index = args[1] if len(args) > 1 else ...
    parts = index if isinstance(index, tuple) else (index,)
    if all(part is ... or type(part) in (int, slice, type(None)) for part in parts):
        # A plain index makes a view, which tells the bytes; others would copy elements.
        return tensor.detach()[index]
    return tensor


def bytes_of(tensor: torch.Tensor) -> tuple[int, int]:
    """From and to which byte a tensor lies."""
    start = address_of(tensor)
    if tensor.is_contiguous():
        return start, start + tensor.nbytes
    reach = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return start, start + (reach + 1) * tensor.element_size()


def own_change(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Iterable[torch.Tensor], str] | None:
    """The operands that an operation changes itself, and what they are to it; torch's functions
    hand over by name the arguments that ask for it."""
    if kwargs.get("max_norm") is not None:
        return flat_tensors(args[1:2]), "its weight in place (max_norm)"
    if kwargs.get("use_input_stats") is True:
        statistics = (kwargs.get("running_mean"), kwargs.get("running_var"))
        return flat_tensors(statistics), "its running statistics in place"
    return None


def _is_in_place(name: str) -> bool:
    # `__add__` ends in an underscore as well.
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
