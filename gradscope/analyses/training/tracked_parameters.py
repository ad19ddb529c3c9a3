"""The tensors that a program holds for learning, and what becomes of them.

Parameters are met when a module registers them, when a call takes them, and in optimizers.  All are
remembered weakly.  Knows nothing of the Report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from gradscope.analyses.training.loop_order import is_gone
from gradscope.analyses.training.members import LeafBirths
from gradscope.analyses.training.optimizers import Optimizers
from gradscope.analyses.training.remade import Remade
from gradscope.autograd.calls import is_deriving, unwrapped
from gradscope.autograd.tensors import (
    TensorTable,
    is_leaf_tensor,
    is_learned_leaf,
    requires_grad,
)
from gradscope.recording.names import locals_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_KNOWN = 200_000
"""Leaves that are remembered, of each sort."""

_MOVES = frozenset(
    ["add_", "sub_", "__iadd__", "__isub__", "addcmul_", "addcdiv_", "lerp_", "data"]
)
"""Edits by which a program descends by hand."""

MAX_CONSTRUCTORS = 8
"""Functions around the making of a parameter that are remembered, the innermost."""

OFTEN = 2
"""Backward calls that have brought a leaf a gradient, from which on it is one that is learned."""


class TrackedParameters:
    """Which leaves there are, where they came from, who used them and who holds them.

    Args:
        recorder: is asked for places.
        made: tells the place where the program itself made a Parameter; -1 where it did not.
    """

    def __init__(self, recorder: Recorder, made: Callable[[torch.Tensor], int]) -> None:
        self.optimizers = Optimizers(recorder, self._note_frozen, self._note_given, self._note_step)
        self.births = LeafBirths(self.optimizers.members)
        self.remade = Remade()
        self._made = made
        self._frozen: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._recorder = recorder
        self._born: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._built: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._constructors: TensorTable[tuple[tuple[int, int], ...]] = TensorTable(MAX_KNOWN)
        self._names: TensorTable[str] = TensorTable(MAX_KNOWN)
        self._used: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._written: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._loaded: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._recorded: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._derived: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._reached: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._inner: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._handles: list[Any] = []

    # ------------------------------------------------------------------ on and off

    def start(self) -> None:
        """Install the global hooks."""
        self.optimizers.start()
        self._handles = [module_hooks.register_module_parameter_registration_hook(self._registered)]

    def stop(self) -> None:
        """Remove them."""
        self.optimizers.stop()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    # ------------------------------------------------------------------ while it runs

    def note_use(self, call: TorchCall) -> None:
        """Remember the first use of each leaf among the operands, and whether any had history."""
        used, deriving = self._used, is_deriving()
        for tensor in map(unwrapped, call.operands) if deriving else call.operands:
            # A Parameter that was frozen is told of, too.
            is_learned = requires_grad(tensor) or type(tensor) is nn.Parameter
            if not is_learned or not is_leaf_tensor(tensor) or tensor in self._inner:
                continue
            if used.get(tensor, -1) < 0:
                used[tensor] = call.place
            if call.in_graph:
                self._recorded[tensor] = True
            if deriving:
                self._derived[tensor] = True

    def note_derived(self, leaves: Iterable[torch.Tensor]) -> None:
        """A derivative, with a graph of its own, was taken of what these leaves went into."""
        for leaf in leaves:
            self._derived[leaf] = True

    def note_written(self, call: TorchCall, sources: Iterable[torch.Tensor]) -> None:
        """A call has changed a tensor in place, which may have been a leaf's own memory
        (``sources``): before its first use that initialises the leaf."""
        # Some initialisers of torch copy, too.
        loads = call.function == "copy_" and call.frame.f_code.co_filename != nn.init.__file__
        for leaf in (*call.operands[:1], *sources):
            if is_leaf_tensor(leaf) and leaf in self._born:
                if loads:
                    self._loaded[leaf] = True
                if leaf not in self._used:
                    self._written[leaf] = call.place

    def note_made_inside(self, call: TorchCall) -> None:
        """A custom Function has made a call: a leaf that this made is a detail of the Function,
        which sends a gradient to it in its own backward, or to nobody."""
        # A setter returns nothing: what it has made a leaf is its operand.
        for tensor in call.results or call.operands[:1]:
            if type(tensor) is torch.Tensor and is_learned_leaf(tensor):
                made = self._recorder.events.leaf_site(tensor)
                if made is not None and made == call.places.site(call.place):
                    self._inner[tensor] = True

    def _note_frozen(self) -> None:
        """An optimizer was made: which parameters are frozen by then?"""
        for leaf, _ in self._born.living():
            if not leaf.requires_grad and leaf not in self._frozen:
                self._frozen[leaf] = -1

    def note_switch(self, call: TorchCall) -> None:
        """The program has said whether a tensor requires grad."""
        leaf = call.operands[0] if call.operands else None
        if leaf is not None and is_learned_leaf(leaf):
            self.births.note(leaf)
        if leaf is not None and requires_grad(leaf) and self._frozen.get(leaf) == -1:
            self._frozen[leaf] = call.place

    # ------------------------------------------------------------------ what is known

    def thawed(self, leaf: torch.Tensor) -> int | None:
        """The place that made a leaf require grad which was frozen when an optimizer was made; -1
        where it was not seen, None where it was none such."""
        return self._frozen.get(leaf) if requires_grad(leaf) else None

    def born(self, tensor: torch.Tensor) -> int:
        """The place where a leaf was made; -1 where it is not known."""
        return self._born.get(tensor, -1)

    def built(self, tensor: torch.Tensor) -> int:
        """The place that made the model of a leaf which is younger than some optimizer; -1 where it
        is not known."""
        return self._built.get(tensor, -1)

    def made_outside(self, tensor: torch.Tensor, module: nn.Module) -> int:
        """The place beyond the constructor of a module in which a leaf was made; -1 where it was
        made elsewhere, or that is not known."""
        constructors = self._constructors.get(tensor, ())
        own = [at for at, (made, _) in enumerate(constructors) if made == id(module)]
        beyond = constructors[own[-1] + 1 :] if own else ()
        # Between the two may be functions that make such modules.
        in_another = (place for made, place in beyond if made)
        return next(in_another, beyond[0][1] if beyond else -1)

    def initialised(self, tensor: torch.Tensor) -> int:
        """The place that filled a parameter last before its first use; -1 where it is not known."""
        return self._written.get(tensor, -1)

    def is_loaded(self, tensor: torch.Tensor) -> bool:
        """Whether other numbers were copied into a parameter."""
        return tensor in self._loaded

    def class_name(self, tensor: torch.Tensor) -> str:
        """What a parameter may be called where nothing in sight holds it: ``Linear.weight``."""
        return self._names.get(tensor, "")

    def used(self, tensor: torch.Tensor) -> int:
        """The place where a leaf was first used; -1 where it never was."""
        return self._used.get(tensor, -1)

    def is_recorded(self, tensor: torch.Tensor) -> bool:
        """Whether a call that took a leaf has recorded history."""
        return tensor in self._recorded

    def is_derived(self, tensor: torch.Tensor) -> bool:
        """Whether a derivative was taken of what a leaf went into."""
        return tensor in self._derived

    def used_leaves(self) -> Iterator[torch.Tensor]:
        """All living leaves that a call has taken."""
        return (tensor for tensor, _ in self._used.living())

    def optimized(self) -> dict[int, tuple[torch.Tensor, bool]]:
        """The tensors in optimizers, and whether one of theirs has stepped."""
        return self.optimizers.held(self._optimizers())

    @property
    def has_optimizer(self) -> bool:
        """Whether any optimizer was seen."""
        return bool(self._optimizers())

    def _optimizers(self) -> set[int]:
        made = self._recorder.events.leaf_site
        return self.optimizers.of_the_program(
            lambda one: made(one) is not None or self.born(one) >= 0 or self.used(one) >= 0
        )

    def note_reached(self, leaves: Sequence[torch.Tensor], counts: bool = False) -> None:
        """A backward call has brought these a gradient; it ``counts`` as one of its own."""
        reached = self._reached
        self.remade.calls += counts
        old = 0
        for leaf, times in zip(leaves, reached.get_all(leaves), strict=True):
            times = times or 0
            old += bool(times)
            if times >= OFTEN:
                continue
            reached[leaf] = times + 1
            if times:
                self.remade.note_fit(self.place_of(leaf))
            elif counts:
                self.remade.note_first(self.place_of(leaf))
        self.remade.fresh += counts and not old

    def place_of(self, leaf: torch.Tensor) -> int:
        """The line of the program that made a Parameter, or the module that holds it."""
        born = self.born(leaf)
        return born if born >= 0 else self._made(leaf)

    def _note_step(self, tensors: Iterable[torch.Tensor]) -> None:
        """An optimizer steps these."""
        if self.remade.is_suspect:
            for leaf in tensors:
                # An input that is learned by a few steps is made anew each time, and no layer.
                self.remade.note_stepped(self.born(leaf))
                if self.born(leaf) < 0:
                    self.remade.note_fit(self._made(leaf))

    def note_edit(self, call: TorchCall) -> None:
        """The program itself changes a leaf, or reads its gradient."""
        if call.frame is call.user and call.operands:
            self.remade.note_fit(self.place_of(call.operands[0]))
            # Before any gradient it may be an initialisation.
            if call.function in _MOVES or (call.results and len(self._reached)):
                self.births.note_edit(call.operands[0])

    def note_filled(self) -> None:
        """Leaves outside the watched graph may have got a gradient as well: a reentrant checkpoint
        makes a backward call of its own."""
        self.note_reached(
            [
                leaf
                for leaf in self.used_leaves()
                if leaf not in self._reached and is_leaf_tensor(leaf) and leaf.grad is not None
            ]
        )

    def _note_given(self, leaves: Sequence[torch.Tensor], others: Iterable[torch.Tensor]) -> None:
        """An optimizer that holds these and others steps; the program itself has given these their
        gradients."""
        # Beside what backward has brought, the zeros of a leaf that the program uses stand for a
        # gradient that there is not; where all are computed by hand they are as good as any number.
        # What was reached is not asked again: to read it may mean to wait for a device.
        if any(one in self._reached for one in others):
            leaves = [
                leaf
                for leaf in leaves
                if leaf in self._reached or self.used(leaf) < 0 or not is_gone(leaf)
            ]
        self.note_reached(leaves)

    def waiting(self) -> Iterator[torch.Tensor]:
        """The parameters that hold a gradient which no step has used."""
        fresh = self.optimizers.order.fresh
        return (
            leaf
            for leaf, _ in self._reached.living()
            if id(leaf) in fresh and type(leaf) is nn.Parameter
        )

    def is_out(self, leaf: torch.Tensor) -> bool:
        """Whether no optimizer holds a leaf, as none can: it is younger than all."""
        return self.births.is_late(leaf) and not self.optimizers.is_held(leaf)

    def is_reached_often(self, leaf: torch.Tensor) -> bool:
        """Whether several backward calls have."""
        return self._reached.get(leaf, 0) >= OFTEN

    def is_reached(self, leaf: torch.Tensor) -> bool:
        """Whether any backward call has brought this leaf a gradient."""
        return leaf in self._reached

    # ------------------------------------------------------------------ hooks

    def _registered(self, module: nn.Module, name: str, parameter: Any) -> None:
        with self._recorder.aside():
            if isinstance(parameter, torch.Tensor):
                self.births.note(parameter)
            if not isinstance(parameter, torch.Tensor) or self.born(parameter) >= 0:
                return
            places = self._recorder.places
            user = places.user_frame(_caller())
            place = -1 if user is None else places.number(user)
            self._born[parameter] = place
            self._names[parameter] = f"{type(module).__name__}.{name}"
            around = self._constructing(user)
            self._constructors[parameter] = tuple(islice(around, MAX_CONSTRUCTORS))
            if self.optimizers.members.made:
                # Beyond the constructors of the model and of its layers.
                beyond = (at for made, at in self._constructing(user) if not made)
                self._built[parameter] = next(beyond, -1)

    def _constructing(self, frame: FrameType | None) -> Iterator[tuple[int, int]]:
        """The functions of the program that are running: of a module's constructor the id of what
        it makes, of others 0, and the place in each."""
        places = self._recorder.places
        while (frame := places.user_frame(frame)) is not None:
            yield _constructed(frame), places.number(frame)
            frame = frame.f_back


def _constructed(frame: FrameType) -> int:
    """The id of the module whose constructor a frame is in; 0 where it is in none."""
    made = locals_of(frame).get("self") if frame.f_code.co_name == "__init__" else None
    return id(made) if issubclass(type(made), nn.Module) else 0


def _caller() -> Any:
    # Beyond this function and the hook.
    return sys._getframe(2)
