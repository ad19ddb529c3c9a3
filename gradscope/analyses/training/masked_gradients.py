"""Elements of a gradient that the program sets to zero itself, so that a step leaves their
parameters alone, and that the step changes all the same: by weight decay, or by a momentum from
before.

Compared only in steps whose gradients were masked so, and of each parameter a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import storage_of
from gradscope.recording.torch_call import TorchCall

MAX_ELEMENTS = 65_536
"""Elements of each parameter that are compared."""

MAX_LOOKS = 20
"""Steps that are compared, of one place that masks."""

MAX_PLACES = 100
"""Places that are remembered."""

_FACTORS = ("mul_", "__imul__")


class MaskedSample(NamedTuple):
    """The first elements of a parameter, as they are and before the step; which of them had a
    gradient of exactly zero; and the place that masked it."""

    place: int
    live: torch.Tensor
    before: torch.Tensor
    masked: torch.Tensor


@dataclass
class KnownMask:
    """Of one place that masks: the steps that were compared, and those of them that moved masked
    elements; how many elements these were at most, of how many, and the place of the step."""

    looks: int = 0
    moved: int = 0
    elements: int = 0
    masked: int = 0
    step: int = -1


@dataclass
class MaskedGradients:
    """Such elements, by the place that masks them."""

    known: dict[int, KnownMask] = field(default_factory=dict)
    _fresh: dict[int, tuple[int, torch.Tensor]] = field(default_factory=dict)
    _waiting: Sequence[MaskedSample] = ()

    def note(self, call: TorchCall) -> None:
        """Between backward and step the program has changed a tensor in place, which may be the
        gradient of a parameter."""
        if call.place < 0 or call.frame is not call.user or call.in_graph:
            return
        known = self.known.get(call.place)
        is_full = known is None and len(self.known) + len(self._fresh) >= MAX_PLACES
        if is_full or (known is not None and known.looks >= MAX_LOOKS):
            return
        masked = _mask(call)
        if masked is not None:
            self._fresh[storage_of(call.operands[0])] = call.place, masked

    def begin(self, parameters: Iterable[torch.Tensor]) -> list[MaskedSample]:
        """Take the samples of a step that is about to be made."""
        self._settle()
        found: list[MaskedSample] = []
        for one in parameters if self._fresh else ():
            place, masked = self._fresh.get(_storage(one.grad)) or (-1, None)
            if masked is not None and masked.numel() == one.numel() and _is_plain(one):
                live = _first(one)
                found.append(MaskedSample(place, live, live.clone(), _first(masked)))
        self._fresh.clear()
        return found

    def end(self, samples: Sequence[MaskedSample], step: int) -> None:
        """The step has been made; what it changed may be put back before the next one."""
        self._waiting = samples
        for place in {one.place for one in samples}:
            known = self.known.setdefault(place, KnownMask())
            known.looks += 1
            known.step = step

    def _settle(self) -> None:
        """Compare what the program has left of the last step."""
        moved: dict[int, list[int]] = {}
        for one in self._waiting:
            if readable(one.live):
                changed = (one.masked & (one.live != one.before)).sum()
                both = torch.stack([one.masked.sum(), changed]).tolist()
                of = moved.setdefault(one.place, [0, 0])
                of[:] = of[0] + both[0], of[1] + both[1]
        self._waiting = ()
        for place, (count, elements) in moved.items():
            mask = self.known[place]
            mask.moved += elements > 0
            if elements > mask.elements:
                mask.elements, mask.masked = elements, count


def _mask(call: TorchCall) -> torch.Tensor | None:
    """Which elements of the first operand a call has set to zero; None where that is not known."""
    target, given = call.operands[0] if call.operands else None, call.args[1:]
    if target is None or not given or not _is_plain(target) or target.requires_grad:
        return None
    first, value = given[0], given[-1]
    try:
        if call.function in _FACTORS and isinstance(first, torch.Tensor) and first.numel() > 1:
            return (first == 0).expand_as(target).contiguous()
        if len(given) < 2 or not isinstance(value, (int, float)) or value != 0:
            return None
        if call.function == "masked_fill_":
            mask: torch.Tensor = first.expand_as(target).contiguous()
            return mask
        if call.function == "__setitem__":
            masked = torch.zeros_like(target, dtype=torch.bool)
            masked[first] = True
            return masked
    except (RuntimeError, IndexError, TypeError):  # an index of the program's own kind
        pass
    return None


def _storage(gradient: torch.Tensor | None) -> int:
    return -1 if gradient is None or not _is_plain(gradient) else storage_of(gradient)


def _is_plain(tensor: torch.Tensor) -> bool:
    return readable(tensor) and tensor.layout is torch.strided and tensor.is_contiguous()


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]
