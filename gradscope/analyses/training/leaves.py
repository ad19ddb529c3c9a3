"""The tensors that a program holds for learning, and what becomes of them: one entry a leaf.

Leaves are met when the program makes a Parameter, when a module registers one, when a call takes
one, in optimizers, and when backward brings one a gradient.  All are remembered weakly, and places
by their numbers, -1 where there is none.  Knows nothing of the Report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from gradscope.autograd.calls import is_deriving, unwrapped
from gradscope.autograd.elements import readable
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.summary import metadata
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    grad_fn_of,
    is_leaf_tensor,
    is_learned_leaf,
    requires_grad,
    storage_of,
)
from gradscope.model.observations import Cut, TrackedParameter
from gradscope.recording.heard import HeardCall, hearing
from gradscope.recording.modules import MAX_ITEMS
from gradscope.recording.names import locals_of, name_in_frame
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.wrappers import local

MAX_LEAVES = 500_000
"""Leaves that are remembered, and storages that the program has changed itself."""

MAX_CONSTRUCTORS = 8
"""Functions around the making of a parameter that are remembered, the innermost."""

DEEPCOPY = nn.Parameter.__deepcopy__.__code__
"""Torch's own way to copy a Parameter."""

_MOVES = frozenset(
    ["add_", "sub_", "__iadd__", "__isub__", "addcmul_", "addcdiv_", "lerp_", "data"]
)
"""Edits by which a program descends by hand."""


@dataclass(eq=False)
class KnownOptimizer:
    """An optimizer: where it was ``made``; whether it has ``stepped``; how many tensors it held
    when it was looked at last.  It is known by this record, as python gives the id of one that is
    gone to the next that is made."""

    made: int = -1
    stepped: bool = False
    size: int = -1


class KnownLeaf(TrackedParameter, eq=False, gc=True):
    """What is known of one leaf, with what only its run asks.

    Where it comes from: ``made`` where the program called ``nn.Parameter``, or ``copied`` from
    another by this cut; ``born`` where a module registered it, under a ``name``
    (``Linear.weight``), in these ``constructors``, each with its place.  ``age`` is how many
    optimizers there had been.

    It is ``inner`` to a custom Function; its gradient was ``read``.  ``holders`` are the places
    that made optimizers which took it, and ``optimizer`` is one of them, of several one that steps.

    As a backward call left it: its ``version``, -1 before any, its ``storage``, and by id what it
    held in ``.grad``;
    ``mixed``: that was a gradient which had been used, and a new one.  Of the steps of optimizers:
    whether one has changed it at all (``steps``), or since the call (``stepped``), whether that
    used a mixed gradient (``reused``), and the id and the version of that (``taken``).
    """

    copied: Cut | None = None
    born: int | None = None
    constructors: tuple[tuple[int, int], ...] = ()
    age: int = -1
    inner: bool = False
    read: bool = False
    holders: tuple[int, ...] = ()
    optimizer: KnownOptimizer | None = None
    version: int = -1
    storage: int = 0
    gradient: int = 0
    mixed: bool = False
    steps: bool = False
    stepped: bool = False
    reused: bool = False
    taken: tuple[int, int] = (0, 0)

    @property
    def is_by_hand(self) -> bool:
        """Whether no optimizer is there to step it, and the program has read its gradient."""
        return not self.steps and not self.holders and self.read


class Leaves:
    """All leaves that were met.

    ``optimizers_made`` counts optimizers, and ``reads`` how often the program, not torch, has read
    the gradient of a leaf.  ``vain`` are tensors that are no leaves, and whose ``.grad`` it has
    read.

    Args:
        recorder: is asked for places.
        cut: told of a leaf that the program made of a tensor with history, or of another leaf, and
            which gives what is known of the place.
    """

    def __init__(self, recorder: Recorder, cut: Callable[..., Cut | None]) -> None:
        self.vain: dict[tuple[int, str], tuple[TensorRef, TrackedParameter]] = {}
        self.reads = 0
        self.optimizers_made = 0
        self._recorder = recorder
        self._cut = cut
        self._known: TensorTable[KnownLeaf] = TensorTable(MAX_LEAVES)
        self._edited: set[int] = set()
        self._any_reached = False
        self._constructor = hearing(recorder, nn.Parameter, "__new__", after=self._note_made)
        self._handle: Any = None

    def start(self) -> None:
        """Watch how parameters are made."""
        self._handle = module_hooks.register_module_parameter_registration_hook(self._registered)
        self._constructor.start()

    def stop(self) -> None:
        """Leave torch as it was."""
        self._constructor.stop()
        if self._handle is not None:
            self._handle.remove()

    # ------------------------------------------------------------------ what is known

    def get(self, tensor: object) -> KnownLeaf:
        """What is known of a leaf; not to be written to, for it may not be kept."""
        return self._known.get(tensor) or KnownLeaf()

    def of(self, leaf: torch.Tensor) -> KnownLeaf:
        """What is known of a leaf, to be written to."""
        known = self._known.get(leaf)
        if known is None:
            known = self._known[leaf] = KnownLeaf()
        return known

    def living(self) -> Iterator[tuple[torch.Tensor, KnownLeaf]]:
        """All leaves that live."""
        return self._known.living()

    def used(self) -> Iterator[torch.Tensor]:
        """All that a call has taken."""
        return (leaf for leaf, known in self.living() if known.used is not None)

    def held(self) -> Iterator[torch.Tensor]:
        """All that an optimizer of the program has taken."""
        return (leaf for leaf, known in self.living() if known.holders)

    def own_optimizers(self) -> set[KnownOptimizer]:
        """Those that hold leaves, and have stepped, or hold one that was met: in one process with
        others there may be some that are none of this program's."""
        return {
            one
            for leaf, known in self.living()
            if (one := known.optimizer)
            and (
                one.stepped
                or not (known.born is None and known.used is None)
                or self._recorder.events.leaf_site(leaf) is not None
            )
        }

    def is_edited(self, leaf: torch.Tensor) -> bool:
        """Whether the program itself has changed a leaf, or what shares its memory, or has read its
        gradient."""
        return storage_of(leaf) in self._edited

    def is_late(self, leaf: torch.Tensor) -> bool:
        """Whether no optimizer has been made since a leaf was, and there was one before; and the
        program does not change it itself."""
        is_younger = 0 < self.get(leaf).age == self.optimizers_made
        return is_younger and not self.is_edited(leaf)

    def made_outside(self, leaf: torch.Tensor, module: nn.Module) -> int:
        """The place beyond the constructor of a module in which a leaf was made; -1 where it was
        made elsewhere, or that is not known."""
        constructors = self.get(leaf).constructors
        own = [at for at, (made, _) in enumerate(constructors) if made == id(module)]
        beyond = constructors[own[-1] + 1 :] if own else ()
        # Between the two may be functions that make such modules.
        in_another = (place for made, place in beyond if made)
        return next(in_another, beyond[0][1] if beyond else -1)

    # ------------------------------------------------------------------ how they are made

    def _note_made(self, call: HeardCall) -> None:
        """``nn.Parameter(...)`` is no torch call, so its constructor is watched."""
        parameter, frame, places = call.result, call.frame, self._recorder.places
        is_own = frame.f_code is DEEPCOPY or not places.is_foreign(frame.f_code)
        if not (is_own and isinstance(parameter, torch.Tensor)):
            return
        data = (*call.args[1:], *call.kwargs.values(), None)[0]
        self._note_age(parameter)
        if frame.f_code is DEEPCOPY:
            original, user = locals_of(frame).get("self"), places.user_frame(frame)
            if user is not None and isinstance(original, torch.Tensor):
                self.note_copy(places.number(user), parameter, original)
            return
        place = self.of(parameter).made = places.number(frame)
        if isinstance(data, torch.Tensor) and grad_fn_of(data) is not None:
            self._cut(place, "Parameter", [parameter], [data])

    def note_copy(self, place: int, copy: torch.Tensor, original: torch.Tensor) -> None:
        """A leaf has been copied."""
        if not is_learned_leaf(original) or place < 0 or copy is original:
            return
        # The copy is a leaf of its own, and not followed.
        self.of(copy).copied = self._cut(place, "deepcopy", [], [original])

    def _note_age(self, leaf: torch.Tensor) -> None:
        known = self.of(leaf)
        if known.age < 0:
            known.age = self.optimizers_made

    def _registered(self, module: nn.Module, name: str, parameter: Any) -> None:
        with self._recorder.aside():
            if not isinstance(parameter, torch.Tensor):
                return
            self._note_age(parameter)
            known = self.of(parameter)
            if known.born is not None:
                return
            places = self._recorder.places
            # Beyond this function.
            user = places.user_frame(sys._getframe(1))
            known.born = None if user is None else places.number(user)
            known.name = f"{type(module).__name__}.{name}"
            known.constructors = tuple(islice(self._constructing(user), MAX_CONSTRUCTORS))

    def _constructing(self, frame: FrameType | None) -> Iterator[tuple[int, int]]:
        """The functions of the program that are running: of a module's constructor the id of what
        it makes, of others 0, and the place in each."""
        places = self._recorder.places
        while (frame := places.user_frame(frame)) is not None:
            yield _constructed(frame), places.number(frame)
            frame = frame.f_back

    # ------------------------------------------------------------------ what calls do with them

    def note_use(self, call: TorchCall) -> None:
        """Remember the first use of each leaf among the operands, and whether any had history."""
        deriving = is_deriving()
        for tensor in map(unwrapped, call.operands) if deriving else call.operands:
            # A Parameter that was frozen is told of, too.
            is_learned = requires_grad(tensor) or type(tensor) is nn.Parameter
            if not is_learned or not is_leaf_tensor(tensor):
                continue
            known = self.of(tensor)
            if known.inner:
                continue
            if known.used is None and call.place >= 0:
                known.used = call.place
            known.recorded |= call.in_graph
            known.derived |= deriving

    def note_derived(self, leaves: Iterable[torch.Tensor]) -> None:
        """A derivative, with a graph of its own, was taken of what these leaves went into."""
        for leaf in leaves:
            self.of(leaf).derived = True

    def note_written(self, call: TorchCall, sources: Iterable[torch.Tensor]) -> None:
        """A call has changed a tensor in place, which may have been a leaf's own memory
        (``sources``): before its first use that initialises the leaf."""
        # Some initialisers of torch copy, too.
        loads = call.function == "copy_" and call.frame.f_code.co_filename != nn.init.__file__
        for leaf in (*call.operands[:1], *sources):
            known = self._known.get(leaf) if is_leaf_tensor(leaf) else None
            if known is not None and known.name:
                known.loaded |= loads
                if known.used is None:
                    known.initialised = call.place

    def note_made_inside(self, call: TorchCall) -> None:
        """A custom Function has made a call: a leaf that this made is a detail of the Function,
        which sends a gradient to it in its own backward, or to nobody."""
        # A setter returns nothing: what it has made a leaf is its operand.
        for tensor in call.results or call.operands[:1]:
            if type(tensor) is torch.Tensor and is_learned_leaf(tensor):
                made = self._recorder.events.leaf_site(tensor)
                if made is not None and made == call.places.site(call.place):
                    self.of(tensor).inner = True

    def note_switch(self, call: TorchCall) -> None:
        """The program has said whether a tensor requires grad."""
        leaf = call.operands[0] if call.operands else None
        if leaf is None:
            return
        if is_learned_leaf(leaf):
            self._note_age(leaf)
        known = self.get(leaf)
        if requires_grad(leaf) and known.thawed and known.thawed_at is None:
            known.thawed_at = call.place

    def note_edit(self, call: TorchCall) -> None:
        """The program itself changes a leaf, or reads its gradient."""
        if call.frame is call.user and call.operands:
            storage = storage_of(call.operands[0])
            # Before any gradient it may be an initialisation.
            is_edit = call.function in _MOVES or (call.results and self._any_reached)
            if is_edit and storage and len(self._edited) < MAX_LEAVES:
                self._edited.add(storage)

    # ------------------------------------------------------------------ who reads gradients

    def note_read(self, call: TorchCall) -> None:
        """Somebody reads ``.grad``: of what?"""
        tensor = call.operands[0] if call.operands else None
        # Where a gradient is retained, to read it is not in vain.
        if tensor is None or not requires_grad(tensor) or tensor.retains_grad:
            return
        if call.frame is not call.user:
            return
        if not is_leaf_tensor(tensor):
            # The next one of a list is in vain as well, though the program may fail before.
            for one in (tensor, *_listed_with(tensor, call.frame)):
                self._note_vain(one, call, call.frame)
            return
        self.reads += 1
        self.of(tensor).read = True

    def _note_vain(self, tensor: torch.Tensor, call: TorchCall, frame: FrameType) -> None:
        node = grad_fn_of(tensor)
        if node is None or tensor.retains_grad:
            return
        site = call.places.site(call.place)
        paths = self._recorder.sources.operands(site) if site is not None else []
        # Also the local variables, in case the expression's own names were bound since.
        names = [name for name in frame.f_code.co_varnames if name.isidentifier()]
        name = name_in_frame(tensor, [*paths, *names], frame)
        made = self._recorder.place_of(node._sequence_nr())
        read = TrackedParameter(
            name, metadata(tensor), requires_grad=True, made=made, history=torch_name(node)
        )
        self.vain.setdefault((made, name), (TensorRef(tensor), read))

    # ------------------------------------------------------------------ what backward brings

    def note_reached(self, leaves: Sequence[torch.Tensor]) -> None:
        """A backward call has brought these a gradient."""
        self._any_reached |= bool(leaves)
        for leaf, known in zip(leaves, self._known.get_all(leaves), strict=True):
            if known is None:
                known = self._known[leaf] = KnownLeaf()
            if known.once or not known.reached:
                known.reached, known.once = True, not known.reached
                if known.copied is not None:
                    known.copied.feeds_graph = True

    def note_moved(self, leaves: Sequence[torch.Tensor]) -> None:
        """A backward call has brought these, which it reached, a gradient that is not 0."""
        for known in self._known.get_all(leaves):
            if known is not None:
                known.alive = True

    def note_filled(self) -> None:
        """Leaves outside the watched graph may have got a gradient as well: a reentrant checkpoint
        makes a backward call of its own."""
        self.note_reached(
            [
                leaf
                for leaf, known in self.living()
                if known.used is not None
                and not known.reached
                and is_leaf_tensor(leaf)
                and leaf.grad is not None
            ]
        )

    # ------------------------------------------------------------------ what optimizers do

    def note_optimizer(self) -> None:
        """One was made: which parameters are frozen by then?"""
        self.optimizers_made += 1
        for leaf, known in self.living():
            known.thawed |= bool(known.name) and not leaf.requires_grad

    def note_given(self, leaves: Sequence[torch.Tensor], others: Iterable[torch.Tensor]) -> None:
        """An optimizer that holds these and others steps; the program itself has given these their
        gradients."""
        # Beside what backward has brought, the zeros of a leaf that the program uses stand for a
        # gradient that there is not; where all are computed by hand they are as good as any number.
        # What was reached is not asked again: to read it may mean to wait for a device.
        if any(self.get(one).reached for one in others):
            known = zip(leaves, map(self.get, leaves), strict=True)
            leaves = [one for one, of in known if of.reached or of.used is None or not is_gone(one)]
        self.note_reached(leaves)


def _listed_with(tensor: torch.Tensor, frame: FrameType) -> Iterator[torch.Tensor]:
    """The tensors that a list in sight of a frame holds together with this one."""
    for value in locals_of(frame).values():
        is_short = type(value) in (list, tuple) and len(value) <= MAX_ITEMS
        if is_short and any(one is tensor for one in value):
            yield from (one for one in value if issubclass(type(one), torch.Tensor))


def is_gone(leaf: torch.Tensor) -> bool:
    """Whether a leaf holds no gradient that a step could use."""
    return not is_there(leaf.grad)


def is_there(gradient: torch.Tensor | None) -> bool:
    """Whether there is a gradient, and it is more than zeros, as far as can be read."""
    gradient = local(gradient)
    if gradient is None:
        return False
    # `zero_grad(set_to_none=False)` leaves zeros, which are as good as none.
    return not readable(gradient) or bool(gradient.detach().any())


def _constructed(frame: FrameType) -> int:
    """The id of the module whose constructor a frame is in; 0 where it is in none."""
    made = locals_of(frame).get("self") if frame.f_code.co_name == "__init__" else None
    return id(made) if issubclass(type(made), nn.Module) else 0
