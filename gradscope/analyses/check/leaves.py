"""Which leaves can be compared with the whole program, and with what.

Knows nothing of how the comparison is made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch

from gradscope.analyses.check.moving import MovingProgram
from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.program import (
    COARSE,
    TOLERANCES,
    LeafOnTape,
    WholeProgram,
    wide_gradients,
)
from gradscope.analyses.check.replay import Replay
from gradscope.autograd.calls import own_grad
from gradscope.autograd.elements import is_released
from gradscope.autograd.summary import name_of
from gradscope.derivatives.call import Call, TapeSlot
from gradscope.derivatives.double_precision import Unrepeatable, value_of, widened
from gradscope.derivatives.single_call import dense_of
from gradscope.errors import CaptureError, described
from gradscope.handlers import let_pass
from gradscope.model.studies import LeafCheck, MovedCuts
from gradscope.words import count, listed

Gradients = Sequence[torch.Tensor | None]

HOOKS = "run without the program's hooks: its own graph would have run them a second time"

KEPT = "the calls were repeated: a second pass through the program's own graph would use up its ctx"


class Found(NamedTuple):
    """What was compared, why no more, and what backward does not see."""

    leaves: tuple[LeafCheck, ...] = ()
    reason: str = ""
    cuts: MovedCuts | None = None


def own_gradients(placed: TapedGraph) -> Gradients | None:
    """The gradients of all leaves by the program's own graph, whose buffers stay; None where that
    would run hooks of the program.

    Raises:
        Unrepeatable: when that graph cannot be asked.
    """
    if any("CheckpointFunction" in node.op for node in placed.graph.nodes):
        raise Unrepeatable("a reentrant checkpoint allows no second backward pass")
    given = (one for one in placed.live.gradients if one is not None)
    for what, tensors in (("its root", placed.live.roots), ("the gradient that is fed in", given)):
        if any(isinstance(one, torch.Tensor) and is_released(one) for one in tensors):
            raise Unrepeatable(f"the memory of {what} has been given back")
    if placed.has_hooks or not placed.keeps_only_data:
        return None
    try:
        placed.live.probe.require_memory()
    except CaptureError as error:
        raise Unrepeatable(error.what) from None
    try:
        live = placed.live
        return own_grad(live.roots, placed.variables, live.gradients)
    except Exception as error:  # torch's, or of a Function of the program
        let_pass(error)
        raise Unrepeatable(f"backward raised {described(error)}") from None


def spoilt_leaves(
    placed: TapedGraph, gradients: Gradients, writers: Mapping[Call, Sequence[int]]
) -> dict[int, str]:
    """The leaves whose gradient would be another if these calls were given copies to write into,
    and the names of such calls."""
    nodes = [placed.walked.nodes[node] for made in writers.values() for node in made]
    handles = [node.register_prehook(_copied) for node in nodes]
    try:
        clean = own_gradients(placed) or gradients
    finally:
        for handle in handles:
            handle.remove()
    name = listed((call.name for call in writers), 3)
    pairs = enumerate(zip(gradients, clean, strict=True))
    return {
        number: name
        for number, (mine, other) in pairs
        if mine is not None and other is not None
        if not torch.allclose(dense_of(mine), dense_of(other), equal_nan=True)
    }


def _copied(gradients: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...]:
    return tuple(None if one is None else one.clone() for one in gradients)


def check_leaves(
    placed: TapedGraph,
    replay: Replay,
    values: Mapping[TapeSlot, torch.Tensor],
    gradients: Gradients | None,
    unsure: Iterable[int],
    half_readers: Collection[str],
    spoilt: Mapping[int, str],
) -> Found:
    """Compare the leaves.

    Args:
        placed: the graph and its calls.
        replay: the calls, made once.
        values: what the roots were then.
        gradients: one a leaf; None to take those of the calls made again, which no hook sees.
        unsure: nodes whose backward is not the derivative of what the tape runs.
        half_readers: functions that read one triangle only of an operand.
        spoilt: of leaves whose gradient a backward has spoilt the name of that.

    Raises:
        Unrepeatable: when the program as a whole cannot be made again.
    """
    weights = weights_of(placed)
    tolerance = _tolerance(placed)
    placed.refuse(values, tolerance)
    blocked = _blocked(placed, replay, unsure)
    reasons = [] if gradients is not None else [HOOKS if placed.has_hooks else KEPT]
    if gradients is None:
        gradients = _wide(placed, replay, weights)
    leaves = list(_leaves(placed, gradients, blocked, spoilt))
    made = (tensor for node in placed.graph.nodes for tensor in node.outputs if tensor)
    work = sum(math.prod(tensor.shape) for tensor in made)
    half_read = {
        leaf: call.name
        # All calls of them, the first one last: it is nearest to the leaf, and stays.
        for call in reversed(placed.calls)
        if call.name in half_readers
        for leaf in placed.leaves_behind(placed.nodes[call])
    }
    is_scaled = placed.graph.scale is not None
    whole = WholeProgram(replay, weights, values, tolerance, half_read, is_scaled)
    found = tuple(whole.check(leaves, work))
    try:
        cuts = MovingProgram(placed, whole, leaves).compared(work) if leaves else None
    except Unrepeatable as error:
        cuts = MovedCuts(reason=error.what)
    missing = len(placed.graph.leaves) - len(leaves)
    which = "one leaf is" if missing == 1 else f"{missing} leaves are"
    if not leaves:
        which = "every leaf is"
    if missing:
        reasons.append(f"{which} behind a call that was not compared")
    return Found(found, "; ".join(reasons), cuts)


def all_leaves(
    placed: TapedGraph,
    replay: Replay,
    values: Mapping[TapeSlot, torch.Tensor],
    weights: Mapping[TapeSlot, torch.Tensor],
) -> list[LeafOnTape]:
    """Every leaf of the graph, with the gradient of the calls made again.

    Raises:
        Unrepeatable: when the program as a whole, or what leads to a leaf, cannot be made again.
    """
    placed.refuse(values, _tolerance(placed))
    blocked = _blocked(placed, replay, (node for nodes in placed.unseen() for node in nodes))
    leaves = list(_leaves(placed, _wide(placed, replay, weights), blocked, {}))
    behind = len(placed.graph.leaves) - len(leaves)
    if behind:
        why = next(iter(replay.failed.values()), "no call of the program was seen to make a node")
        raise Unrepeatable(f"{count(behind, 'leaf')} behind a call that cannot be run again: {why}")
    return leaves


def _wide(
    placed: TapedGraph, replay: Replay, weights: Mapping[TapeSlot, torch.Tensor]
) -> Gradients:
    slots = placed.leaf_slots()
    start = {slot: value_of(slot.given) for own in slots.values() for slot in own if slot.given}
    slopes = wide_gradients(replay, weights, start)
    found: list[torch.Tensor | None] = []
    for number in range(len(placed.graph.leaves)):
        parts = [part for slot in slots.get(number, ()) if (part := slopes[slot]) is not None]
        found.append(sum(parts[1:], parts[0]) if parts else None)
    return found


def _leaves(
    placed: TapedGraph, gradients: Gradients, blocked: set[int], spoilt: Mapping[int, str]
) -> Iterable[LeafOnTape]:
    slots = placed.leaf_slots()
    for number, (leaf, gradient) in enumerate(zip(placed.graph.leaves, gradients, strict=True)):
        if leaf.node in blocked or number not in slots:
            continue
        like = placed.variables[number].detach()
        dense = torch.zeros_like(like) if gradient is None else dense_of(gradient)
        yield LeafOnTape(number, slots[number], dense, spoilt.get(number, ""))


def _blocked(placed: TapedGraph, replay: Replay, unsure: Iterable[int]) -> set[int]:
    """Nodes behind something that could not be made again, or is not what it seems."""
    start = {node for call in replay.failed for node in placed.nodes[call]}
    start.update(unsure)
    for call in placed.calls:
        for slot in call.slots:
            if slot.given is not None and slot.given.node in placed.positions:
                start.add(placed.positions[slot.given.node])
    return placed.behind(start)


def weights_of(placed: TapedGraph) -> dict[TapeSlot, torch.Tensor]:
    """What is fed in at each root."""
    if len(placed.roots) != len(placed.live.roots):
        raise Unrepeatable("the root was changed after the program had computed it")
    pairs = zip(placed.roots.items(), placed.live.gradients, strict=True)
    return {
        slot: widened(torch.ones_like(root) if given is None else given)
        for (slot, root), given in pairs
    }


def _tolerance(placed: TapedGraph) -> float:
    """What the coarsest tensor of the graph leaves of a derivative."""
    known = {name_of(kind): one for kind, one in TOLERANCES.items()}
    kinds = {tensor.dtype for node in placed.graph.nodes for tensor in node.outputs if tensor}
    return max((known.get(kind, COARSE) for kind in kinds), default=COARSE)
