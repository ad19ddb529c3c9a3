"""Operations whose operands were broadcast against each other to something larger than both, and
whether that is what a loss then sums up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import averaged_sums, kinds, summed_elements
from gradscope.analyses.doctor.cut_calls import MAX_FOLLOWED, MOST_GRAPHS
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import TensorTable, grad_fn_of
from gradscope.model.observations import Broadcast
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 1_000
"""Places that are remembered."""

_DISTANCES = """mse_loss l1_loss smooth_l1_loss huber_loss kl_div gaussian_nll_loss
    poisson_nll_loss soft_margin_loss"""
LOSSES = frozenset(_DISTANCES.split())
_ARITHMETIC = """add sub mul div truediv rsub radd rmul rtruediv subtract multiply divide
    true_divide pow rpow lerp addcmul addcdiv squared_difference"""
_CHOOSING = "maximum minimum max min fmax fmin where clamp clip"
_TRANSCENDENTAL = "logaddexp xlogy atan2 hypot"
ELEMENTWISE = frozenset(f"{_ARITHMETIC} {_CHOOSING} {_TRANSCENDENTAL}".split())
WATCHED = LOSSES | ELEMENTWISE
_PASSING = ELEMENTWISE | frozenset(
    ["abs", "neg", "exp", "log", "sqrt", "square", "clone", "float", "to", "detach", "relu"]
)
"""What also gives an element for each element, of operands that need no broadcasting."""

_ADDED = ("add", "radd", "iadd", "sub", "rsub", "isub", "subtract")

_INSERTED = kinds("Unsqueeze")

Shape = tuple[int, ...]


@dataclass(eq=False)
class GrownShapes:
    """A place where shapes grew; the nodes that take the result, and how many backward calls they
    have waited for theirs."""

    told: Broadcast
    nodes: set[int] = field(default_factory=set)
    age: int = 0


class Broadcasts:
    """Places where two shapes grew into a third.

    Args:
        is_derived: whether a tensor without history was computed from what has one: a target, an
            advantage.  What only data goes into is left alone.
    """

    def __init__(self, is_derived: Callable[[torch.Tensor], bool]) -> None:
        self.known: dict[int, GrownShapes] = {}
        self._is_derived = is_derived
        self._results: TensorTable[GrownShapes] = TensorTable(MAX_FOLLOWED)
        self._waiting: list[GrownShapes] = []

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if self._results:
            self._follow(call)
        if call.function not in WATCHED or len(call.operands) < 2:
            return
        if not call.in_graph and not any(map(self._is_derived, call.operands)):
            return
        known = self._known(call)
        if known is not None:
            self._pass_on(call, known)

    def mark(self, roots: Iterable[Any]) -> None:
        """Backward is about to walk a graph from these roots."""
        waiting, self._waiting = self._waiting, []
        # This runs at every look, and only few programs have something that waits.
        summed: Collection[int] = summed_elements(roots) if waiting else ()
        averaged = averaged_sums(roots) if any(map(_is_added, waiting)) else set()
        for known in waiting:
            # The mean of all sums, or differences, is that of the pairs.
            spared = averaged if _is_added(known) else set()
            known.told.reduced |= not (known.nodes - spared).isdisjoint(summed)
            known.age += 1
            if known.told.reduced or known.age == MOST_GRAPHS:
                known.nodes.clear()
            else:
                self._waiting.append(known)
        self._results.forget_dead()

    def _known(self, call: TorchCall) -> GrownShapes | None:
        """What is known of this place, if the operands grow here."""
        grown = _grown(call.operands)
        if grown is None:
            return None
        known = self.known.get(call.place)
        if known is None and len(self.known) < MAX_PLACES:
            known = self.known[call.place] = GrownShapes(
                Broadcast(call.place, call.function, *grown)
            )
        return known

    def _follow(self, call: TorchCall) -> None:
        if call.function not in _PASSING:
            return
        for tensor in call.operands:
            known = self._results.get(tensor)
            if known is not None:
                self._pass_on(call, known)

    def _pass_on(self, call: TorchCall, known: GrownShapes) -> None:
        if not call.in_graph:
            for tensor in call.results:
                self._results[tensor] = known
        elif not known.told.reduced and len(known.nodes) < MAX_FOLLOWED:
            if not known.nodes:
                self._waiting.append(known)
                known.age = 0
            known.nodes.add(call.sequence_range[1] - 1)


def _is_added(known: GrownShapes) -> bool:
    return known.told.function in _ADDED


def _grown(operands: list[torch.Tensor]) -> tuple[tuple[Shape, Shape], Shape] | None:
    """Two operands of which each grows, and what to."""
    for first, second in combinations(operands[:3], 2):
        one, other = tuple(first.shape), tuple(second.shape)
        # A scalar is there to be broadcast.
        if one == other or not one or not other:
            continue
        result = _broadcast(one, other)
        # Where only one of them grows, as a bias does, it is meant as a rule; so it is where the
        # dimension was just put in.
        longer = first if len(one) > len(other) else second
        if result not in (one, other) and (len(one) == len(other) or not _is_inserted(longer)):
            return (one, other), result
    return None


def _is_inserted(tensor: torch.Tensor) -> bool:
    """Whether a dimension of length 1 was given to this very tensor on purpose."""
    made = grad_fn_of(tensor)
    return made is not None and torch_name(made).startswith(_INSERTED)


def _broadcast(first: Shape, second: Shape) -> Shape:
    """The shape that two operands of one call grow to."""
    longer = max(len(first), len(second))
    padded = [(1,) * (longer - len(shape)) + tuple(shape) for shape in (first, second)]
    return tuple(b if a == 1 else a for a, b in zip(*padded, strict=True))
