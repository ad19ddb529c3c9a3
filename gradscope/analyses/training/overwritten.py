"""Parameters that an optimizer steps, and that the program draws towards others which never change:
the average of a target network taken the wrong way round.

An operand of the change in place is traced to the parameter whose memory it shows, or that it was
computed from a line before; the latter only while calls are heard in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import nn

from gradscope.analyses.training.copies import Copies
from gradscope.analyses.training.restored import Restored
from gradscope.analyses.training.tracked_parameters import TrackedParameters
from gradscope.autograd.tensors import TensorRef, TensorTable, storage_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_KNOWN = 10_000
"""Tensors that are remembered: computed from parameters, and drawn towards."""

MAX_PLACES = 100
"""Places that are remembered."""

FEWEST = 5
"""Steps after which a parameter was written to, from which on it follows another."""


@dataclass
class KnownOverwrite:
    """A place that draws parameters towards others: in how many steps; which, and to which."""

    times: int = 0
    step: int = -1
    drawn: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_KNOWN))
    towards: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_KNOWN))


@dataclass
class KnownFollower:
    """A parameter in no optimizer that the program itself writes to: after how many steps, the last
    of them, and the place."""

    times: int = 0
    step: int = -1
    place: int = -1


class Overwritten:
    """Such places; ``changed`` are the parameters that may well be drawn towards others, and
    ``is_ripe`` says that it is time to look what follows.

    Args:
        recorder: knows the places.
        learners: know what forward has taken, and what is stepped.
        copies: know what was copied.
    """

    def __init__(self, recorder: Recorder, learners: TrackedParameters, copies: Copies) -> None:
        self.known: dict[int, KnownOverwrite] = {}
        self._learners = learners
        self._copies = copies
        self._derived: TensorTable[TensorRef] = TensorTable(MAX_KNOWN)
        self.restored = Restored(recorder, learners.optimizers)
        self.is_ripe = False
        self.changed: TensorTable[KnownFollower] = TensorTable(MAX_KNOWN)
        self._memory: dict[int, TensorRef] = {}
        self._leaves = -1

    def note_result(self, call: TorchCall) -> None:
        """A call without history: its results are computed from parameters outside."""
        if not self._learners.optimizers.any_stepped or len(call.operands) > 2:
            return
        found = [source for one in call.operands if (source := self._source(one)) is not None]
        for result in call.results if found else ():
            self._derived[result] = TensorRef(found[0])

    def note_change(self, call: TorchCall) -> None:
        """A tensor was changed in place, or given other data."""
        if not self._learners.optimizers.any_stepped or not call.operands:
            return
        target, *others = call.operands
        # Those of a list that are changed together are followers, as a rule.
        many = call.args[0] if call.args and isinstance(call.args[0], (list, tuple)) else ()
        for one in many[1:]:
            leaf = self._leaf(one) if isinstance(one, torch.Tensor) else None
            if leaf is not None and not self._is_held(leaf):
                self._note_follower(leaf, call)
        is_own = self._is_held(target) or type(target) is nn.Parameter
        drawn = target if is_own else self._leaf(target)
        if drawn is None:
            return
        self._memory[storage_of(drawn)] = TensorRef(drawn)
        if not self._is_held(drawn):
            self._note_follower(drawn, call)
            return
        self.restored.note(drawn, call)
        sources = [one for tensor in others if (one := self._source(tensor)) is not None]
        place = _caller(call)
        if not sources or (place not in self.known and len(self.known) >= MAX_PLACES):
            return
        known = self.known.setdefault(place, KnownOverwrite())
        step = self._learners.optimizers.order.steps
        known.times += known.step != step
        known.step = step
        known.drawn[drawn] = True
        for one in sources:
            known.towards[one] = True

    def _note_follower(self, leaf: torch.Tensor, call: TorchCall) -> None:
        known, step = self.changed.get(leaf), self._learners.optimizers.order.steps
        if known is None:
            known = self.changed[leaf] = KnownFollower()
        if known.step != step:
            known.times += 1
            # Looked at after 5 steps, and 10, 20, and so on.
            rounds, rest = divmod(known.times, FEWEST)
            self.is_ripe |= not rest and rounds.bit_count() == 1
        known.step, known.place = step, call.place

    def still(self) -> Iterator[tuple[int, KnownOverwrite]]:
        """Those that draw towards nothing but what never changed."""
        for place, known in self.known.items():
            if not any(one in self.changed for one, _ in known.towards.living()):
                yield place, known

    def _is_held(self, tensor: torch.Tensor) -> bool:
        return self._learners.optimizers.is_held(tensor)

    def _source(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The parameter outside of optimizers that a tensor shows, or was computed from."""
        derived = self._derived.get(tensor)
        leaf = derived() if derived is not None else self._leaf(tensor)
        is_other = leaf is not None and self._learners.used(leaf) >= 0 and not self._is_held(leaf)
        return leaf if is_other else None

    def _leaf(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The leaf of a module, or of the forward pass, whose memory this is."""
        if self._leaves != (now := self._learners.uses + len(self._copies)):
            leaves = (*self._copies.leaves(), *self._learners.leaves())
            self._leaves, self._memory = now, {storage_of(one): TensorRef(one) for one in leaves}
        known = self._memory.get(storage_of(tensor))
        return None if known is None else known()


def _caller(call: TorchCall) -> int:
    """The place that says which is which: the call, where a function is given both."""
    frame = call.user
    if frame is None or frame.f_code.co_argcount < 2 or frame.f_code.co_varnames[0] == "self":
        return call.place
    outer = call.places.user_frame(frame.f_back)
    return call.place if outer is None else call.places.number(outer)
