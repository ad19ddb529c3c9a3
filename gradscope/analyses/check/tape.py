"""Keeps every call of a program that made history, so that it can be made again; what cuts history
goes on a tape beside it.

The tape holds what came from outside (leaves, constants) and no result of a built-in call, so it
costs little more memory than the graph itself.  Knows nothing of derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradscope.analyses.check.replay import needed
from gradscope.analyses.check.slots import Slots, Taken
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.isolation import functions_off
from gradscope.autograd.nodes import make_release_safe, walk
from gradscope.autograd.tensors import flat_tensors, is_learned_leaf, requires_grad
from gradscope.derivatives.call import (
    HOOKED,
    Call,
    OutsideValue,
    TapeSlot,
    is_tensor,
    is_usable,
    left_behind,
    problem_of,
    random_states,
)
from gradscope.recording.listener import Listener
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_BYTES, MAX_CALLS = 2**31, 200_000
"""Memory of tensors from outside that the calls of a tape refer to, and calls on it; beyond it the
older half is forgotten, of those that cut history all."""

FEW = 1_000
"""Calls, fewer than which are not searched for those that nothing needs any more."""

LARGE = 2**27
"""Bytes of what they refer to, with which the same begins, and of a tensor that is not copied to be
followed through a change in place."""

_tensor: Any = torch.Tensor

_OTHERS = (_tensor.grad.__get__, _tensor.requires_grad_)
"""They give what no forward computes, and the very tensor that is to be no leaf any more."""

_NEW = re.compile(
    r".*_like|new_.*"
    r"|normal|bernoulli|multinomial|poisson|binomial|_standard_gamma|_sample_dirichlet"
)
"""Names of what takes nothing but the shape, and of what draws a sample: in float64 it would be
another one."""


_saving_hooks: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)
"""The hooks that what is saved now goes through; None also where torch does not tell."""


class CutTape:
    """Keeps the calls that cut history, in their order, and those that go on from there without
    any: what descends from a leaf, though backward holds it fixed.

    A change of a leaf or of a parameter is a step of the training and no part of a loss: what was
    computed before it comes from other values, and is forgotten.

    Args:
        outside: the slots of tensors with history, and of constants.
        taken: the slots that calls with history have taken.
    """

    def __init__(self, outside: Slots, taken: Callable[[], Iterable[TapeSlot]]) -> None:
        self.calls: list[Call] = []
        self._outside = outside
        self._taken = taken
        # Not of a leaf's own slot: what is a view of one, made where history is off, requires a
        # gradient and is a leaf to torch.
        self._known = Slots(lambda slot, tensor: slot.carries == requires_grad(tensor))
        self._bytes = 0
        self._enough = FEW, LARGE

    def find(self, tensor: Any) -> TapeSlot | None:
        """The slot of a tensor without history that descends from a leaf."""
        return self._known.find(tensor) if is_tensor(tensor) else None

    def is_leaf(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a leaf, or the memory of one without its history."""
        slot = self.find(tensor)
        given = None if slot is None else slot.base.given
        return is_learned_leaf(tensor) or (given is not None and given.leaf is not None)

    def takes(self, func: Any, tensors: list[torch.Tensor], changes: bool) -> bool:
        """Whether a call that makes no history takes what may move."""
        # A parameter that does not learn is the average of others, and what is to have a history
        # has lost it by such a change.
        if changes and (requires_grad(tensors[0]) or isinstance(tensors[0], torch.nn.Parameter)):
            return False
        return func not in _OTHERS and self.may_move(tensors)

    def may_move(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether any of them is a leaf, or descends from one."""
        return any(requires_grad(one) or self.find(one) for one in tensors)

    def operand(self, argument: Any) -> Any:
        """What stands for an argument of such a call."""
        if not is_tensor(argument):
            return argument
        known = self.find(argument) or self._outside.find(argument)
        self._bytes += argument.nbytes if known is None else 0
        return known or self._outside.operand(argument)

    def take(self, call: Call, made: TorchCall) -> None:
        """A call that has made no history has returned: keep it if it gives numbers."""
        if call.function in _OTHERS or not any(slot.can_move for slot in call.slots):
            return
        if _NEW.fullmatch(call.name):
            return
        operands = [one for one in pytree.tree_leaves((made.args, made.kwargs)) if is_tensor(one)]
        if call.changed is None:
            taken = list(zip(operands, call.slots, strict=False))
            # Some give back an operand, and one takes only its history.
            old = [] if call.function is _tensor.detach_ else list(map(id, operands))
            call.results = [
                self._known.result(one, taken) if id(one) not in old and _can_move(one) else None
                for one in pytree.tree_leaves(made.out)
            ]
        elif call.changed.given is None:
            self._known.changed(operands[0], call.changed)
            call.results = [call.changed]
        elif _can_move(operands[0]):
            call.results = [self._known.result(operands[0], [])]
        if any(call.results):
            call.cut, call.place = call.cut or call.name, made.place
            call.first = call.end = made.sequence_range[0]
            call.random = left_behind(call.random)
            self.calls.append(call)
            if len(self.calls) > self._enough[0] or self._bytes > self._enough[1]:
                self._sweep()

    def _sweep(self) -> None:
        """Drop the calls that nothing needs any more."""
        used = {slot.moving for slot in self._taken() if slot.moving is not None}
        self.calls = needed(self.calls, set(), used.union(self._known.living()))
        self._known.sweep()
        held = {slot.given for call in self.calls for slot in call.slots if slot.given}
        self._bytes = sum(given.value.nbytes for given in held)
        self._enough = max(FEW, 2 * len(self.calls)), self._bytes + LARGE
        if self._bytes > MAX_BYTES or len(self.calls) > MAX_CALLS:
            self.forget()

    def forget(self) -> None:
        self.calls = []
        self._known.forget()
        self._bytes, self._enough = 0, (FEW, LARGE)


def _can_move(result: Any) -> bool:
    """Whether something is a tensor of numbers that move with a leaf, as a mask or an index does
    not."""
    is_continuous = is_tensor(result) and (result.is_floating_point() or result.is_complex())
    return is_continuous and is_usable(result)


class Tape(Listener):
    """Keeps the calls of a recorder.

    ``has_hooks``: a backward pass of ours would run code of the program: hooks on tensors, modules
    or saved tensors.  ``has_forgotten``: the tape was full.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.taped: list[Call] = []
        self.has_hooks = False
        self.has_forgotten = False
        self._recorder = recorder
        self._slots = Slots()
        self.cuts = CutTape(self._slots, self._held)
        self._bytes = 0
        self._is_closed = False

    def slot_of(self, tensor: Any) -> TapeSlot | None:
        """The slot of a tensor of the program, if it is on the tape as it is now."""
        is_plain = isinstance(tensor, torch.Tensor) and is_usable(tensor)
        return self._slots.find(tensor) if is_plain else None

    def end(self) -> None:
        """Keep nothing from now on, and let go of everything."""
        self._is_closed = True
        self.taped = []
        self._slots.forget()
        self.cuts.forget()

    # ------------------------------------------------------------------ the calls

    def released(self, call: BackwardCall, _nodes: object) -> None:
        """What a backward call frees can never be checked any more."""
        if self._is_closed:
            return
        walked = walk(edge_of(root)[0] for root in call.roots)
        make_release_safe(walked)
        freed = {node._sequence_nr() for node in walked.nodes}
        # Told by their nodes: a call may have made several, and one that is freed spoils it.
        self.taped = [one for one in self.taped if freed.isdisjoint(range(one.first, one.end))]
        self._recount()

    prepares = None

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        """The call that is about to be made, its operands as they are now; None when it can neither
        make history nor go on from where history was cut."""
        # With create_graph `grad` makes history also where grad mode is off.
        records = torch.is_grad_enabled() or func is torch.autograd.grad
        # What a Function does in its forward is a part of the one call of it.
        if self._is_closed or not (records or not self._recorder.functions):
            return None
        # Most calls without history are those of an optimizer: to flatten them costs more.
        if not (records or self.cuts.may_move(flat_tensors(args, kwargs))):
            return None
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
        makes = records and any(map(requires_grad, tensors))
        is_change = bool(tensors) and self._recorder.events.changes(func, kwargs)
        # Named as if it changed numbers.
        is_change = is_change and func is not torch.Tensor.detach_
        if is_change and self.cuts.is_leaf(tensors[0]):
            self.cuts.forget()
            return None
        if not (makes or self.cuts.takes(func, tensors, is_change)):
            return None
        # What a transform computes is in no graph that could be walked.
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return None
        # Held until the operands are: nothing else holds a slot.
        kept = self._about_to_change(tensors[0], makes) if is_change else None
        problem = problem_of(func, leaves)
        # What cannot be made again needs no arguments, and they would keep the graph alive.
        operand = self._operand if makes else self.cuts.operand
        leaves = [] if problem else [operand(one) for one in leaves]
        carrying = [one for one in leaves if isinstance(one, TapeSlot) and one.carries]
        cut = "" if makes else _mode()
        call = Call(func, leaves, spec, list(dict.fromkeys(carrying)), problem=problem, cut=cut)
        if kept is not None and leaves and leaves[0] is kept:
            call.changed = kept
        # Nobody says beforehand whether a call draws; the state is dropped if it has not moved.
        call.random = random_states(tensors)
        return call

    def after(self, call: TorchCall, opened: Call | None) -> None:
        """A call has returned: it is put on the tape if it made history, or cut it."""
        self.has_hooks |= getattr(call.func, "__name__", "") == "register_hook"
        if opened is None:
            return
        if call.in_graph and not opened.cut:
            self._finish(opened, call)
        else:
            self.cuts.take(opened, call)

    def differentiated(self, call: TorchCall, opened: Call | None) -> None:
        """So is ``torch.autograd.grad``."""
        if opened is not None and call.in_graph:
            with functions_off():
                self._finish(opened, call)

    # ------------------------------------------------------------------ what is kept

    def _about_to_change(self, tensor: torch.Tensor, makes: bool) -> TapeSlot | None:
        if not is_usable(tensor) or (not makes and tensor.nbytes > LARGE):
            return None
        moving = None if makes else self.cuts.find(tensor)
        slot = self._slots.operand(tensor) if moving is None else self._slots.find(tensor)
        if slot is not None and slot.given is not None:
            slot.given.keep()
        return moving or slot

    def _operand(self, argument: Any) -> Any:
        if not isinstance(argument, torch.Tensor):
            return argument
        known = self._slots.find(argument)
        self._bytes += argument.nbytes if known is None else 0
        slot = known or self._slots.operand(argument)
        if not (slot.carries or slot.moving):
            slot.moving = self.cuts.find(argument)
        return slot

    def _finish(self, call: Call, made: TorchCall) -> None:
        operands = [one for one in pytree.tree_leaves((made.args, made.kwargs)) if is_tensor(one)]
        call.first, call.end = made.sequence_range
        span = self._recorder.span_of(call.end - 1)
        call.place = -1 if span is None else span.place
        call.random = left_behind(call.random)
        # Not strict, here and below: a call that cannot be made again has no slots.
        taken = list(zip(operands, call.slots, strict=False))
        if any(self._is_rewritten(call, *pair) for pair in taken):
            call.problem = "it changes in place an operand that backward treats as a constant"
        if call.changed is not None:
            self._slots.changed(operands[0], call.changed)
        for tensor in pytree.tree_leaves(made.out):
            call.results.append(self._result(call, tensor, taken))
        self.has_hooks |= call.custom is HOOKED or _saving_hooks(True) is not None
        self.taped.append(call)
        if self._bytes > MAX_BYTES or len(self.taped) > MAX_CALLS:
            self._forget_half()

    def _is_rewritten(self, call: Call, tensor: torch.Tensor, slot: TapeSlot) -> bool:
        """Whether a call has changed a leaf without history, as an embedding with ``max_norm``."""
        is_leaf = slot.given is not None and slot.given.leaf is not None
        return is_leaf and slot is not call.changed and self._slots.find(tensor) is not slot

    def _result(self, call: Call, tensor: Any, operands: list[Taken]) -> TapeSlot | None:
        if not is_tensor(tensor) or not requires_grad(tensor) or not is_usable(tensor):
            return None
        known = self._slots.find(tensor)
        # It has given back an operand, as what works in place does.
        if known is not None and known in call.slots:
            return known
        slot = self._slots.result(tensor, operands)
        # A custom Function may fail in float64; those after it then go on from what it gave here.
        if call.custom is not None or call.problem:
            slot.result = OutsideValue.of(tensor)
        return slot

    def _held(self) -> Iterator[TapeSlot]:
        return (slot for call in self.taped for slot in call.slots)

    def _forget_half(self) -> None:
        self.has_forgotten = True
        del self.taped[: max(len(self.taped) // 2, 1)]
        self._recount()

    def _recount(self) -> None:
        """Calls have left the tape, and with them what only they held."""
        self._slots.sweep()
        held = {slot.given for slot in self._held() if slot.given}
        self._bytes = sum(given.value.nbytes for given in held)


LISTENER = Tape


def _mode() -> str:
    """Why a call makes no history, whatever it is."""
    # Asked first: in inference mode grad is switched off as well.
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "constants" if torch.is_grad_enabled() else "no_grad"
