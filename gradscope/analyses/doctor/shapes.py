"""Operations whose operands were broadcast against each other to something larger than both, and
whether that is what a loss then sums up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import averaged_sums, kinds, summed_elements
from gradscope.analyses.doctor.cut_calls import MAX_FOLLOWED
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import grad_fn_of
from gradscope.model.observations import Broadcast
from gradscope.recording.torch_call import TorchCall

_DISTANCES = """mse_loss l1_loss smooth_l1_loss huber_loss kl_div gaussian_nll_loss
    poisson_nll_loss soft_margin_loss"""
LOSSES = frozenset(_DISTANCES.split())
_ARITHMETIC = """add sub mul div truediv rsub radd rmul rtruediv subtract multiply divide
    true_divide pow rpow lerp addcmul addcdiv squared_difference"""
_CHOOSING = "maximum minimum max min fmax fmin where clamp clip"
_TRANSCENDENTAL = "logaddexp xlogy atan2 hypot"
ELEMENTWISE = frozenset(f"{_ARITHMETIC} {_CHOOSING} {_TRANSCENDENTAL}".split())
WATCHED = LOSSES | ELEMENTWISE

_ADDED = ("add", "radd", "iadd", "sub", "rsub", "isub", "subtract")

_INSERTED = kinds("Unsqueeze")

Shape = tuple[int, ...]


class Broadcasts:
    """Places where two shapes grew into a third, on the way to a gradient."""

    def __init__(self) -> None:
        self.known: dict[int, Broadcast] = {}
        # The nodes that were made there, with the place of each.
        self._nodes: deque[tuple[int, int]] = deque(maxlen=MAX_FOLLOWED)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if not call.in_graph or call.function not in WATCHED or len(call.operands) < 2:
            return
        grown = _grown(call.operands)
        if grown is not None:
            told = Broadcast(call.place, call.function, *grown)
            self.known.setdefault(call.place, told)
            self._nodes.append((call.sequence_range[1] - 1, call.place))

    def mark(self, roots: Iterable[Any]) -> None:
        """Backward is about to walk a graph from these roots."""
        waiting = [(node, self.known[at]) for node, at in self._nodes if not self.known[at].reduced]
        # This runs at every look, and only few programs have something that waits.
        if waiting:
            summed = summed_elements(roots)
            is_added = any(told.function in _ADDED for _, told in waiting)
            averaged = averaged_sums(roots) if is_added else set()
            for node, told in waiting:
                # The mean of all sums, or differences, is that of the pairs.
                is_spared = told.function in _ADDED and node in averaged
                told.reduced |= node in summed and not is_spared


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
