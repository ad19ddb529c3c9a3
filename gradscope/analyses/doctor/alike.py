"""Layers whose units are all alike: equal weights, which get equal gradients and so stay equal.

The weights of a graph are read in the first full looks, a row or two of each; only those of which
these are equal are read as a whole.  Knows nothing of the Report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.autograd.elements import readable
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import TensorRef, storage_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site

MAX_LOOKS = 8
"""Full looks in which the weights are read."""

MAX_ALIKE = 64
"""Weights that are remembered."""

SAME = 1e-5
"""Rounding apart, weights that differ by no more of their largest element are equal, and gradients
too: how a processor adds up makes equal units part in the last digits."""


@dataclass(eq=False)
class KnownAlike:
    """A weight whose units were alike: its first unit at that time, and where it was set.

    ``moved``: it has changed since, and they still were."""

    tensor: TensorRef
    units: int
    first: torch.Tensor
    site: Site | None
    moved: bool = False


class Alike:
    """The weights whose units are alike.

    Args:
        recorder: knows what was changed in place, and where.
        made: where the program made a Parameter; -1 where it did not.
    """

    def __init__(self, recorder: Recorder, made: Callable[[torch.Tensor], int]) -> None:
        self.known: dict[int, KnownAlike] = {}
        self._recorder = recorder
        self._made = made
        self._looks = 0

    def look(self, made: FullCapture) -> None:
        """A backward call has been made, and has left its gradients in ``.grad``."""
        self._looks += 1
        if self._looks > MAX_LOOKS:
            return
        weights = list(_weights(made))
        for weight, units in _equal_ends(weights):
            if len(self.known) < MAX_ALIKE and _is_alike(units, weight):
                self._note(weight, units)

    def told(self) -> Iterator[tuple[torch.Tensor, KnownAlike]]:
        """Those that have changed, and whose units have stayed alike."""
        for known in self.known.values():
            tensor = known.tensor()
            if known.moved and tensor is not None:
                yield tensor, known

    def _note(self, weight: torch.Tensor, units: Units) -> None:
        values = units(weight.detach())
        known = self.known.get(id(weight))
        if known is None or known.tensor() is not weight:
            first, site = values[0].clone(), self._site(weight)
            self.known[id(weight)] = KnownAlike(TensorRef(weight), len(values), first, site)
        elif not known.moved:
            known.moved = not torch.equal(values[0], known.first)

    def _site(self, weight: torch.Tensor) -> Site | None:
        """Where a weight was set last, else where it was made."""
        storage = storage_of(weight)
        changes = (one for one in reversed(self._recorder.events.in_place) if storage)
        change = next((one for one in changes if one.storage == storage), None)
        if change is not None and change.site is not None:
            return change.site
        made = self._recorder.places.site(self._made(weight))
        return made or self._recorder.events.leaf_site(weight)


Units = Callable[[torch.Tensor], torch.Tensor]
"""Puts the dimension of a weight that counts the units of its layer first."""


def _rows(weight: torch.Tensor) -> torch.Tensor:
    return weight


def _columns(weight: torch.Tensor) -> torch.Tensor:
    return weight.transpose(0, 1)


def _weights(made: FullCapture) -> Iterator[tuple[torch.Tensor, Units]]:
    """The weights of layers in a graph that hold a gradient."""
    walked, leaves = made.walked, set(made.leaf_positions)
    ways: dict[int, set[Units | None]] = {}
    for source, slot, target, _ in walked.edges:
        if target in leaves:
            ways.setdefault(target, set()).add(_units(walked.nodes[source], slot))
    for position, found in ways.items():
        (units,) = found if len(found) == 1 else (None,)
        node: Any = walked.nodes[position]
        weight = node.variable
        if units is None or weight is None or weight.dim() < 2 or weight.grad is None:
            continue
        fits = readable(weight) and readable(weight.grad) and weight.is_floating_point()
        fits = fits and weight.numel() > 0
        if fits and weight.grad.shape == weight.shape and units(weight).size(0) > 1:
            yield weight, units


def _units(node: Any, slot: int) -> Units | None:
    """How a node that takes a weight lays out the units of its layer; None where it is no layer, or
    an embedding, or its units see different inputs."""
    op = torch_name(node)
    # `x @ weight.T`, as `nn.Linear` has it.
    if op == "TBackward0":
        return _rows
    if op == "ConvolutionBackward0" and slot == 1 and getattr(node, "_saved_groups", 0) == 1:
        return _columns if node._saved_transposed else _rows
    is_product = (op == "MmBackward0" and slot == 1) or (op == "AddmmBackward0" and slot == 2)
    return _columns if is_product else None


def _equal_ends(
    weights: list[tuple[torch.Tensor, Units]],
) -> Iterator[tuple[torch.Tensor, Units]]:
    """Those whose first and last unit are equal; one wait for each device."""
    asked: dict[torch.device, list[tuple[torch.Tensor, Units, torch.Tensor]]] = {}
    for weight, units in weights:
        values = units(weight.detach())
        is_equal = _are_same(values[-1], values[0])
        asked.setdefault(weight.device, []).append((weight, units, is_equal))
    for found in asked.values():
        flags = torch.stack([is_equal for _, _, is_equal in found]).tolist()
        yield from ((one[0], one[1]) for one, flag in zip(found, flags, strict=True) if flag)


def _is_alike(units: Units, weight: torch.Tensor) -> bool:
    """Whether all units of a weight are equal, and so are their gradients, which are not zero."""
    values = units(weight.detach())
    if weight.grad is None or not bool(_are_same(values, values[:1])):
        return False
    given = units(weight.grad.detach()).float()
    return bool(given.any()) and bool(_are_same(given, given[:1]))


def _are_same(values: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Whether all of these are equal but for rounding; still on their device."""
    return (values - first).abs().max() <= SAME * values.abs().max()
