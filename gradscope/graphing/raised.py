"""A graph whose root is the call that raised, over what went into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from msgspec.structs import replace

from gradscope.graphing.blame import where
from gradscope.model.report import Edge, Graph, Node, Root
from gradscope.recording.failed import FailedCall, Operand
from gradscope.recording.recorder import Recorder


def failed_call(recorder: Recorder, error: BaseException | None) -> FailedCall | None:
    """The torch call in which the program failed; None where it failed in code of its own."""
    failed = recorder.failed
    return failed if failed is not None and failed.is_behind(error) else None


def told(failed: FailedCall, recorder: Recorder) -> str:
    """The call in a sentence: `` `self.fc(x)` at net.py:8 (fc Linear(100→10) got [2,676])``."""
    return f"{where(recorder.places.site(failed.place), recorder)} ({failed.got})"


def operands(failed: FailedCall) -> list[torch.Tensor]:
    """What went into a call and has a history, or is a leaf; as far as it is still there."""
    tensors = (one.reference() for one in failed.operands)
    return [one for one in tensors if one is not None]


def gone(failed: FailedCall) -> list[Operand]:
    """The results among its operands that are no longer there."""
    return [one for one in failed.operands if one.op and one.reference() is None]


def with_raised(
    graph: Graph, failed: FailedCall, recorder: Recorder, origin: Callable[[Any], int | None]
) -> Graph:
    """The graph of the operands of a call, below a node that stands for the call.

    It belongs to no module, so that it is never folded away.  Operands that are gone are nodes
    below which nothing is known.

    Args:
        graph: of the operands that are there; its roots.
        failed: the call.
        recorder: knows where each operand was made.
        origin: the number of a place of the program.
    """
    lost = gone(failed)
    first = 1 + len(lost)
    place = origin(recorder.places.site(failed.place))
    above = [Node(0, failed.function, outputs=(None,), origin=place, raised=failed.got)]
    for one in lost:
        made = None if one.number is None else origin(recorder.site_of(one.number))
        above.append(Node(len(above), one.op, outputs=(one.info,), origin=made))
    known = ((root.node + first, root.output) for root in graph.roots)
    unknown = iter(range(1, first))
    # In the order in which the call has them.
    ends = [
        (next(unknown), 0) if one in lost else next(known)
        for one in failed.operands
        if one in lost or one.reference() is not None
    ]
    into = (Edge(0, slot, *end) for slot, end in enumerate(ends))
    below = (Edge(e.source + first, e.slot, e.target + first, e.output) for e in graph.edges)
    return replace(
        graph,
        nodes=(*above, *(replace(node, id=node.id + first) for node in graph.nodes)),
        edges=(*into, *below),
        leaves=tuple(replace(leaf, node=leaf.node + first) for leaf in graph.leaves),
        roots=(Root(0, 0),),
    )
