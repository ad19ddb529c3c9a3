"""A graph whose root is the call that raised, over what went into it."""

from __future__ import annotations

from msgspec.structs import replace

from gradscope.autograd.tensors import requires_grad
from gradscope.graphing.blame import where
from gradscope.model.report import Edge, Graph, Node, Root
from gradscope.recording.failed import FailedCall
from gradscope.recording.recorder import Recorder


def failed_call(recorder: Recorder, error: BaseException | None) -> FailedCall | None:
    """The torch call in which the program failed; None where it failed in code of its own."""
    failed = recorder.failed
    return failed if failed is not None and failed.is_behind(error) else None


def told(failed: FailedCall, recorder: Recorder) -> str:
    """The call in a sentence: `` `self.fc(x)` at net.py:8 (fc Linear(100→10) got [2,676])``."""
    return f"{where(recorder.places.site(failed.place), recorder)} ({failed.got})"


def operands(failed: FailedCall) -> list[object]:
    """What went into a call and has a history, or is a leaf; as far as it is still there."""
    tensors = (reference() for reference in failed.operands)
    return [one for one in tensors if one is not None and requires_grad(one)]


def with_raised(graph: Graph, failed: FailedCall, origin: int | None) -> Graph:
    """The graph of the operands of a call, below a node that stands for the call.

    It belongs to no module, so that it is never folded away.
    """
    above = Node(0, failed.function, outputs=(None,), origin=origin, raised=failed.got)
    into = (Edge(0, slot, one.node + 1, one.output) for slot, one in enumerate(graph.roots))
    below = (Edge(one.source + 1, one.slot, one.target + 1, one.output) for one in graph.edges)
    return replace(
        graph,
        nodes=(above, *(replace(node, id=node.id + 1) for node in graph.nodes)),
        edges=(*into, *below),
        leaves=tuple(replace(leaf, node=leaf.node + 1) for leaf in graph.leaves),
        roots=(Root(0, 0),),
    )
