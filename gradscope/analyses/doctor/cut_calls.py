"""What one call of torch tells by itself: whether it gives values, and what it does with a result
without history that it takes; and what is remembered of a place that cuts history.
"""

from __future__ import annotations

import numbers
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import torch

from gradscope.analyses.doctor.ancestry import Near
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    grad_fn_of,
    is_leaf_tensor,
    living,
    requires_grad,
)
from gradscope.model.observations import Cut, CutReason
from gradscope.recording.names import value_in_frame
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall

MAX_FOLLOWED = 20_000
"""Results without history that are followed on their way."""

MOST_GRAPHS = 4
"""Backward calls after which a node is no longer expected in the graph of the next one."""

MOST_VAIN = 3
"""Calls in a row at one place behind which nothing new lies; what lies behind later ones is not
searched any more."""


class KnownCut(Cut, eq=False, gc=True):
    """A place that cuts, with what the report tells by names and numbers: the leaves behind its
    first call, which are held, and behind ``later`` ones.

    ``gathers``: it is a collective; ``discrete``: its result is no floating-point number.
    """

    first: list[torch.Tensor] | None = None
    later: TensorTable[bool] = msgspec.field(default_factory=lambda: TensorTable(MAX_FOLLOWED))
    gathers: bool = False
    discrete: bool = False
    vain: int = 0

    @property
    def place(self) -> int:
        """The number of the place."""
        return -1 if self.origin is None else self.origin

    def behind(self) -> list[torch.Tensor]:
        """The leaves that lay behind any of its calls."""
        return [*(self.first or ()), *(leaf for leaf, _ in self.later.living())]

    @property
    def sets(self) -> bool:
        """Whether it gives a tensor new numbers, as the average of a target network does."""
        return self.function.endswith("_") and self.function != "detach_"

    @property
    def is_settled(self) -> bool:
        """Whether its last calls had nothing new behind them."""
        return self.vain >= MOST_VAIN

    def add(self, leaves: Iterable[torch.Tensor]) -> None:
        """These lay behind one more call, as in a loop over the blocks of a network."""
        if self.first is None:
            self.first = list(leaves)
            return
        # Asked one by one: where each call has a leaf of its own, thousands are known.
        known = set(map(id, self.first))
        fresh = [leaf for leaf in leaves if id(leaf) not in known and leaf not in self.later]
        self.vain = 0 if fresh else self.vain + 1
        for leaf in fresh:
            self.later[leaf] = True


@dataclass(eq=False)
class CutCall:
    """One call at such a place: where somebody has looked, the leaves behind it, and what lay near;
    the nodes that took its result, of which some ``added`` it to another; ``age`` counts the
    backward calls since."""

    cut: KnownCut
    leaves: list[TensorRef] | None
    near: Near = field(default_factory=dict)
    takers: set[int] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    age: int = 0

    def behind(self) -> list[torch.Tensor]:
        """The leaves that lay behind it, as far as that is known."""
        return self.cut.behind() if self.leaves is None else living(self.leaves)


LARGEST = 4_096
"""Elements of a term that are looked at."""


def family(names: str) -> frozenset[str]:
    """Functions of torch, by their names."""
    return frozenset(names.split())


NUMBERS = family("item tolist numpy float int bool complex index array")
SHARING = ("data", "detach")
ADDING = family("add radd iadd add_ sub rsub isub sub_ stack")


def is_nothing(tensor: torch.Tensor) -> bool:
    """Whether all of a small tensor is 0; of one that would have to be waited for nobody knows."""
    return tensor.is_cpu and is_small(tensor, LARGEST) and not bool(tensor.any())


def is_continuous(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def if_same_line(call: TorchCall, place: int) -> str:
    here, there = call.places.line(call.place), call.places.line(place)
    return call.function if here is not None and here == there else ""


def reason_now(records: bool) -> CutReason:
    # Asked first: in inference mode grad is switched off as well.
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "function" if records else "no_grad"


def reason_of(function: str) -> CutReason:
    """Why what a custom Function of this name uses inside is cut off."""
    return "checkpoint" if "Checkpoint" in function else "function"


def values_of(call: TorchCall) -> list[torch.Tensor]:
    """The results that depend on the elements of its operands, and have no history."""
    if len(call.results) == 1 and grad_fn_of(call.results[0]) is not None:
        return []  # as of nearly all calls
    operands = {id(tensor) for tensor in call.operands}
    # A new leaf made of tensors with history (torch.tensor(list, requires_grad=True)) is cut too;
    # the very operand back is not.
    plain = [
        tensor
        for tensor in call.results
        if not requires_grad(tensor) or (is_leaf_tensor(tensor) and id(tensor) not in operands)
    ]
    if len(plain) == len(call.results):
        return plain
    # Beside a result with history another may show an operand that has none (broadcast_tensors).
    return [one for one in plain if id(one) not in operands and not one._is_view()]


MAX_NUMBERS = 1_000
"""Numbers that are remembered, the latest."""

MAX_LISTED = 100
"""Numbers of a list that are looked at."""


class PlainNumbers:
    """Python numbers that the program has made of tensors with history, and adds to a loss again,
    with the calls that cut off what they were made of.  A number is known by its identity, and
    searched for under the names in the expression that adds.

    Args:
        sources: tells the names in an expression.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        # With the number itself, so that its id is no other's.
        self._known: OrderedDict[int, tuple[float, list[CutCall]]] = OrderedDict()

    def note(self, number: object, calls: list[CutCall]) -> None:
        """A call has made this of what has a history, or had one; also of a list of numbers."""
        for one in _numbers_in(number) if calls else ():
            if type(one) is float:
                self._known[id(one)] = one, calls
                if len(self._known) > MAX_NUMBERS:
                    self._known.popitem(last=False)

    def added(self, call: TorchCall) -> list[CutCall]:
        """Those behind a number that a call adds to a tensor, or makes one of, also in a list."""
        if not self._known:
            return []
        given = [number for argument in call.args for number in _numbers_in(argument)]
        found = [self._calls_of(one) for one in given]
        site = None if call.user is None else call.places.site(call.place)
        if given and not any(found) and site is not None and call.user is not None:
            names = self._sources.operands(site)
            found = [self._calls_of(value_in_frame(name, call.user)) for name in names]
        return [one for calls in found for one in calls]

    def _calls_of(self, value: object) -> list[CutCall]:
        return self._known[id(value)][1] if id(value) in self._known else []


def _numbers_in(value: object) -> list[object]:
    """The number that something is, or the first ones that a list holds, also in lists."""
    waiting, found = [value], list[object]()
    while waiting and len(found) < MAX_LISTED:
        one = waiting.pop()
        if isinstance(one, list | tuple):
            waiting += reversed(one[:MAX_LISTED])
        elif _is_number(one):
            found.append(one)
    return found


def _is_number(value: object) -> bool:
    """Whether it is a number that may have a fraction, numpy's too."""
    kind = type(value)
    return issubclass(kind, numbers.Real) and not issubclass(kind, numbers.Integral)
