"""What is to blame for NaN or infinity besides the node that made it: the line inside of a custom
Function, or an eps that is 0 in its dtype.

In forward every call of a Function is seen as it is made.  Its backward is not watched while it
runs: where it has sent NaN or infinity, it is run once more on copies of what it has, and each call
is looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode
from torch.overrides import TorchFunctionMode

from gradscope.analyses.doctor.values import NonFiniteValues
from gradscope.autograd import saved
from gradscope.autograd.elements import is_released
from gradscope.autograd.isolation import functions_off
from gradscope.autograd.nonfinite import Counts, count
from gradscope.autograd.summary import name_of
from gradscope.derivatives.rerun import is_restorable, unnoticed
from gradscope.derivatives.stale import backward_again
from gradscope.model.observations import Birth, Rounding
from gradscope.recording.places import Places
from gradscope.recording.source import Site
from gradscope.recording.torch_call import TorchCall, flat_tensors, name_of_call

_WRITTEN = """full full_like new_full fill fill_ masked_fill masked_fill_ where tensor as_tensor
    new_tensor setitem"""
WRITING = frozenset(_WRITTEN.split())
"""Functions that write numbers which the program chose; infinity there is meant as a mask."""

_ADDING = frozenset(["add", "add_", "radd", "iadd"])
_CLAMPING = frozenset(["clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "clip_"])

MAX_KEPT = 1_000
"""Calls with such a number that are remembered."""


class Births:
    """The lines inside of forward that made the first NaN or infinity, by the number of the node
    that the Function made: ``known``, since the last backward call."""

    def __init__(self) -> None:
        self.known: dict[int, Birth] = {}
        self._first: Birth | None = None

    def note(self, call: TorchCall) -> None:
        """A call inside of a Function."""
        if self._first is not None:
            return
        # Nowhere else is each of them waited for.
        results = [one for one in call.results if one.is_cpu]
        if is_birth(call.func, results, _kept(call.operands, results)):
            self._first = _birth(call.places.site(call.place), call.func)

    def end(self, call: TorchCall, values: NonFiniteValues) -> None:
        """A Function has returned."""
        first, self._first = self._first, None
        last = call.sequence_range[1] - 1
        if first is not None and any(sequence == last for sequence, _ in values.counts):
            self.known[last] = first


def _is_released(gradient: torch.Tensor | None) -> bool:
    return gradient is not None and is_released(gradient)


def _kept(operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The operands that a call has not changed."""
    return [one for one in operands if all(one is not result for result in results)]


def birthplace(
    node: LiveNode, received: Sequence[torch.Tensor | None], places: Places
) -> Birth | None:
    """Where the backward of a custom Function makes its first NaN or infinity; None where it is no
    such Function, cannot be run again unnoticed, or makes none of finite numbers.

    Args:
        node: has just run, on finite gradients, and still has what it saved.
        received: those gradients.
        places: tells the lines of the program.
    """
    custom = getattr(node, "_forward_cls", None)
    if not isinstance(node, BackwardCFunction) or custom is None or not is_restorable(custom):
        return None
    if not saved.keeps_only_data(node) or saved.is_packed(node):
        return None
    if saved.ReleasedMemory().refusal(node) or any(map(_is_released, received)):
        return None
    watch = _FirstNonFinite(places)
    copies = [None if one is None else one.detach().clone() for one in received]
    with unnoticed({custom}), _random_on_devices_kept(copies):
        backward_again(custom, node, copies, watch)
    return watch.found


class _FirstNonFinite(TorchFunctionMode):
    """Looks for the first call that makes NaN or infinity of finite numbers."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.found: Birth | None = None
        self._places = places

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        # Asked before the call, which may change them in place.
        with functions_off():
            taken = [] if self.found is not None else [*map(_counts, flat_tensors(args, kwargs))]
        out = func(*args, **kwargs)
        with functions_off():
            if self.found is None and is_birth(func, flat_tensors(out, args[:1]), taken):
                site = self._places.site_of(sys._getframe(1))
                self.found = _birth(site, func, in_backward=True)
        return out


def _birth(site: Site | None, func: Any, in_backward: bool = False) -> Birth | None:
    return None if site is None else Birth(-1, site, name_of_call(func), in_backward)


def is_birth(
    func: Any, results: Sequence[torch.Tensor], taken: Sequence[torch.Tensor | Counts | None]
) -> bool:
    """Whether a call has made NaN, or infinity that the program did not write itself, of what it
    has taken: tensors, or what was counted in them."""
    made = _total(results)
    if made == (0, 0):
        return False
    nan, inf = _total(taken)
    # Written infinity is a mask, and what becomes of it is not finite either.
    return (made[0] > 0 and not nan) or not (nan or inf or name_of_call(func) in WRITING)


def _total(tensors: Sequence[torch.Tensor | Counts | None]) -> Counts:
    counted = [_counts(one) if isinstance(one, torch.Tensor) else one for one in tensors]
    found = [one for one in counted if one is not None]
    return sum(nan for nan, _ in found), sum(inf for _, inf in found)


def _counts(tensor: torch.Tensor) -> Counts | None:
    return count(tensor) if tensor.is_floating_point() else None


@contextmanager
def _random_on_devices_kept(tensors: Sequence[torch.Tensor | None]) -> Iterator[None]:
    """No random state of the devices that hold these tensors is moved in the block."""
    devices = {one.device.index for one in tensors if one is not None and one.is_cuda}
    with torch.random.fork_rng([index for index in devices if index is not None]):
        yield


# ---------------------------------------------------------------- an eps that is 0


class RoundedNumbers:
    """The numbers that the program adds, or clamps at, and that are 0 in the dtype of the result,
    as an eps may be: ``known``, since the last backward call, by the sequence number of the node
    that the call made."""

    def __init__(self) -> None:
        self.known: dict[int, Rounding] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        name = call.function
        if not (name in _ADDING or name in _CLAMPING) or not call.in_graph:
            return
        if len(self.known) >= MAX_KEPT or not call.results:
            return
        dtype = call.results[0].dtype
        if not dtype.is_floating_point:
            return
        finfo = torch.finfo(dtype)
        for value in _numbers(call):
            # Half of the smallest number is rounded to 0.
            if 0 < value <= finfo.smallest_normal * finfo.eps / 2:
                sequence = call.sequence_range[1] - 1
                self.known[sequence] = Rounding(sequence, value, name_of(dtype))


def _numbers(call: TorchCall) -> Iterator[float]:
    """What a call adds, or its lower bound, where that is a number."""
    names = ("other",) if call.function in _ADDING else ("min",)
    given = (*call.args[:2], *(call.kwargs.get(name) for name in names))
    return (float(one) for one in given if type(one) is float)
