"""What `kl_div` is given where it takes the logarithm of a probability, or the probability: the
numbers themselves tell which of the two it is.

Some calls of each place are looked at, so that a GPU is waited for a few times only.
"""

from __future__ import annotations

import torch

from gradscope.analyses.training.oddities import Oddities
from gradscope.autograd.elements import is_small
from gradscope.model.loop_observations import OddityKind
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 1_000
"""Places that are remembered."""

LOOKS = 3
"""Calls of each that are looked at."""

MAX_ELEMENTS = 4_000_000
"""Elements of an operand that is looked at."""

NEAR = 1e-3
"""How far from 1 probabilities may add up, for they may be half precision; relative."""


class Logarithms:
    """The calls of `kl_div` that take a probability for its logarithm, or the other way about;
    ``oddities`` is told of each place once."""

    def __init__(self, oddities: Oddities) -> None:
        self._oddities = oddities
        self._looks: dict[int, int] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if call.function != "kl_div" or not call.in_graph:
            return
        looks = self._looks.get(call.place, 0)
        if looks >= LOOKS or (not looks and len(self._looks) >= MAX_PLACES):
            return
        self._looks[call.place] = looks + 1
        found = _found(call)
        if found is not None:
            self._looks[call.place] = LOOKS
            self._oddities.tell(found[0], call.place, found[1])


def _found(call: TorchCall) -> tuple[OddityKind, int] | None:
    """Which operand is not what its function takes, and the dimension along which the probabilities
    add up to 1."""
    # `torch.nn.functional.kl_div` hands its options over by name, `torch.kl_div` may be given them
    # in order.
    given = dict(zip(("input", "target", "reduction", "log_target"), call.args, strict=False))
    given.update(call.kwargs)
    takes_log = {"input": True, "target": bool(given.get("log_target"))}
    for operand, is_log in takes_log.items():
        tensor = given.get(operand)
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            continue
        if tensor.numel() and is_small(tensor, MAX_ELEMENTS):
            dim = _adding_up(tensor.detach().float(), not is_log)
            if dim is not None:
                no_log: OddityKind = "input no log" if operand == "input" else "target no log"
                return no_log if is_log else "target log", dim
    return None


def _adding_up(numbers: torch.Tensor, is_log: bool) -> int | None:
    """The dimension along which all numbers are probabilities that add up to 1, or (``is_log``)
    the logarithms of such; None where there is none."""
    if is_log:
        if not bool((numbers <= 0).all()):
            return None
        numbers = numbers.exp()
    elif not bool((numbers >= 0).all()):
        return None
    for dim in reversed(range(numbers.dim())):
        # Along a single element a 1 tells nothing.
        if numbers.size(dim) > 1 and bool(((numbers.sum(dim) - 1).abs() < NEAR).all()):
            return dim
    return None
