"""What the nodes of a live graph saved: how active activations are, and what made a NaN."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd import saved
from gradscope.autograd.elements import is_small, readable
from gradscope.autograd.nodes import Walked, torch_name
from gradscope.autograd.summary import read_numbers, reducible
from gradscope.graphing.edge_gradients import Gradients
from gradscope.model.observations import Activity, Saved
from gradscope.model.plain import Number, number

FLAT = 0.01
"""A local derivative below this passes next to nothing."""

ONE_HOT = 0.99
"""A softmax row of which one element has more than this passes next to nothing."""

MIN_SAMPLES = 8
"""Samples needed before a unit that never fired counts as dead."""

MAX_ELEMENTS = 4_000_000
"""Activations larger than this are not looked at."""


# ---------------------------------------------------------------- what made a NaN


def summaries(node: LiveNode, received: Gradients) -> Iterable[Saved]:
    """The range and the odd elements of each tensor that a node saved, and what overflowed; its
    position is not known."""
    kept = {
        slot: reducible(tensor.detach())
        for slot, tensor in saved.values(node)
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
        if readable(tensor) and tensor.numel()
    }
    overflow = _overflow(node, kept, received[0] if received else None)
    for slot, tensor in kept.items():
        yield _summary(slot, tensor, overflow)


def _overflow(
    node: LiveNode, kept: dict[str, torch.Tensor], received: torch.Tensor | None
) -> tuple[Number, Number, Number] | None:
    """What arrived at an element, the local derivative there, and the largest number of the dtype,
    where the product of the two is beyond it: in twice the digits, as that of a product, a quotient
    and a power can be computed of what they saved."""
    op = torch_name(node)
    wide = {slot: tensor.double() for slot, tensor in kept.items()}
    derivatives = list(wide.values()) if op == "MulBackward0" else []
    if op in ("PowBackward0", "PowBackward1") and "self" in wide:
        exponent = wide["exponent"] if "exponent" in wide else getattr(node, "_saved_exponent", 0)
        derivatives = [exponent * wide["self"] ** (exponent - 1)]
    if op == "DivBackward0" and "other" in wide:
        inverse = 1 / wide["other"]
        derivatives = [inverse, *(-wide[slot] * inverse**2 for slot in wide if slot == "self")]
    if received is None or not (received.is_floating_point() and readable(received)):
        return None
    largest, upstream = torch.finfo(received.dtype).max, received.detach().double()
    for derivative in derivatives:
        one, other = torch.broadcast_tensors(upstream, derivative)  # type: ignore[no-untyped-call]
        over = one.isfinite() & other.isfinite() & ((one * other).abs() > largest)
        if bool(over.any()):
            return number(one[over][0].item()), number(other[over][0].item()), number(largest)
    return None


def _summary(
    slot: str, tensor: torch.Tensor, overflow: tuple[Number, Number, Number] | None
) -> Saved:
    nan = tensor.isnan()
    known = tensor[~nan] if bool(nan.any()) else tensor
    lowest, highest = (known.min().item(), known.max().item()) if known.numel() else (0.0, 0.0)
    return Saved(
        node=-1,
        slot=slot,
        minimum=number(lowest),
        maximum=number(highest),
        zeros=int((tensor == 0).sum()),
        nan=int(nan.sum()),
        inf=int(tensor.isinf().sum()),
        count=tensor.numel(),
        overflow=overflow,
    )


# ---------------------------------------------------------------- activations


def activities(walked: Walked) -> Iterator[Activity]:
    """How active the activations of a graph are; to be read before its buffers are freed."""
    found: list[tuple[int, str, torch.Tensor]] = []
    for position, node in enumerate(walked.nodes):
        if torch_name(node) not in _LOOKS:
            continue
        slot, kind, look = _LOOKS[torch_name(node)]
        try:
            tensor = saved.value(node, slot)
            if tensor is not None and is_small(tensor, MAX_ELEMENTS) and tensor.numel():
                flags = look(node, tensor.detach())
                if flags.numel():
                    found.append((position, kind, flags.float().mean()))
        except (RuntimeError, AttributeError, TypeError):
            continue  # freed, changed in place, or of another torch: nothing to see
    # On the device of the activation until now: who reads each would wait for each.
    figures = read_numbers([share for _, _, share in found])
    for (position, kind, _), share in zip(found, figures, strict=True):
        yield Activity(position, **{kind: number(share)})


def _hot(node: Any, result: torch.Tensor) -> torch.Tensor:
    """The rows of a softmax of which one element has nearly all; none where it is over one."""
    # Torch shows -1 as the unsigned number of the same bits.
    dim = node._saved_dim - 2**64 if node._saved_dim >= 2**63 else node._saved_dim
    # Over one element a softmax is always 1.
    if not result.dim() or result.size(dim) < 2:
        return torch.empty(0)
    hot = result.amax(dim) > ONE_HOT
    # A row of which the mask leaves one element is one-hot whatever the network does.
    return hot[(result > 0).sum(dim) > 1] if _is_masked(node) else hot


def _is_masked(node: LiveNode) -> bool:
    """Whether what a softmax takes went through a mask a moment before."""
    level = [node]
    for _ in range(4):
        level = [t for one in level for t, _ in one.next_functions if t is not None][:8]
        if any(torch_name(one).startswith(("MaskedFill", "Where", "Add")) for one in level):
            return True
    return False


def _idle(active: torch.Tensor) -> torch.Tensor:
    """The units that are never active; of what is not made of units, or of few samples, none is."""
    # Images have their channels second, everything else has its units last.
    channel = 1 if active.dim() >= 4 else active.dim() - 1
    if active.dim() < 2 or active.numel() // active.size(channel) < MIN_SAMPLES:
        return torch.zeros(1)
    return active.sum([dim for dim in range(active.dim()) if dim != channel]) == 0


_Look = Callable[[Any, torch.Tensor], torch.Tensor]

_LOOKS: dict[str, tuple[str, str, _Look]] = {
    "SigmoidBackward0": ("result", "saturated", lambda _, result: result * (1 - result) < FLAT),
    "TanhBackward0": ("result", "saturated", lambda _, result: 1 - result * result < FLAT),
    "SoftmaxBackward0": ("result", "saturated", _hot),
    "ReluBackward0": ("result", "dead", lambda _, result: _idle(result > 0)),
    "ThresholdBackward0": (
        *("self", "dead"),
        lambda node, taken: _idle(taken > node._saved_threshold),
    ),
    "HardtanhBackward0": (
        *("self", "dead"),
        lambda node, taken: _idle((taken > node._saved_min_val) & (taken < node._saved_max_val)),
    ),
}
"""What is looked at of activations: a slot, and the parts of its tensor that pass nothing."""


def freed_slots(walked: Walked, freed_before: set[int]) -> int | None:
    """The first node in backward order whose saved tensors an earlier call freed; None where none
    was.

    Args:
        freed_before: sequence numbers of nodes that earlier calls went through.
    """
    for position, node in enumerate(walked.nodes):
        if node._sequence_nr() not in freed_before:
            continue
        for _, value in saved.values(node):
            if isinstance(value, RuntimeError) and "freed" in str(value):
                return position
    return None
