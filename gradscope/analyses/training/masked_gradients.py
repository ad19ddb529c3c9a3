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

_MASKS = frozenset(["mul_", "__imul__", "masked_fill_", "index_fill_", "__setitem__", "zero_"])


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
    _fresh: dict[int, int] = field(default_factory=dict)

    def note(self, call: TorchCall) -> None:
        """The program has changed a tensor in place, which may be the gradient of a parameter."""
        if call.function not in _MASKS or call.frame is not call.user or not call.operands:
            return
        # A factor of one number makes it smaller.
        if call.function in ("mul_", "__imul__") and all(
            one.numel() < 2 for one in call.operands[1:]
        ):
            return
        known = self.known.get(call.place)
        is_full = known is None and len(self.known) + len(self._fresh) >= MAX_PLACES
        if not is_full and (known is None or known.looks < MAX_LOOKS):
            self._fresh[storage_of(call.operands[0])] = call.place

    def begin(self, parameters: Iterable[torch.Tensor]) -> list[MaskedSample]:
        """Take the samples of a step that is about to be made."""
        if not self._fresh:
            return []
        held = ((one, one.grad) for one in parameters)
        found = [
            (self._fresh[storage_of(gradient)], _first(one), _first(gradient))
            for one, gradient in held
            if gradient is not None
            and storage_of(gradient) in self._fresh
            and all(readable(t) and t.is_contiguous() for t in (one, gradient))
        ]
        self._fresh.clear()
        return [MaskedSample(place, live, live.clone(), grad == 0) for place, live, grad in found]

    def end(self, samples: Sequence[MaskedSample], step: int) -> None:
        """Compare them with what the step has made of them."""
        moved: dict[int, tuple[int, int]] = {}
        for one in samples:
            if readable(one.live):
                both = torch.stack(
                    [one.masked.sum(), (one.masked & (one.live != one.before)).sum()]
                )
                masked, elements = both.tolist()
                known = moved.get(one.place, (0, 0))
                moved[one.place] = known[0] + masked, known[1] + elements
        for place, (masked, elements) in moved.items():
            mask = self.known.setdefault(place, KnownMask())
            mask.looks += 1
            mask.moved += elements > 0
            mask.step = step
            if elements > mask.elements:
                mask.elements, mask.masked = elements, masked


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]
