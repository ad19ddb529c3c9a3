"""Several backward calls of one program as several passes of one Report.

The steps of a training loop make a new graph each, but as a rule the same one.  Plain data in,
plain data out.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gradscope.model.report import BackwardPass, Graph, Node, Report


def joined(report: Report, later: Report) -> Report:
    """The report with the pass of a later call, where that walked the same graph.

    What else is known of nodes and leaves, such as their values, stays that of the first call.
    Where the graph is another, a note says so.
    """
    (added,) = later.passes
    if not _is_same(report.graph, later.graph):
        note = (
            f"backward call {added.number} walks another graph and is not shown here; "
            f"--call {added.number} shows it"
        )
        return msgspec.structs.replace(report, notes=(*report.notes, note))
    graph, added = _placed(report.graph, later.graph, added)
    notes = dict.fromkeys((*report.notes, *later.notes))
    return msgspec.structs.replace(
        report, graph=graph, passes=(*report.passes, added), notes=tuple(notes)
    )


def _is_same(one: Graph, other: Graph) -> bool:
    return (
        len(one.nodes) == len(other.nodes)
        and one.edges == other.edges
        and [(root.node, root.output) for root in one.roots]
        == [(root.node, root.output) for root in other.roots]
        and all(a == b for a, b in zip(_kinds(one), _kinds(other), strict=True))
    )


def _kinds(graph: Graph) -> Iterator[tuple[object, ...]]:
    # Lines and values are no part of it: they may differ from step to step.
    return ((node.op, node.kind, *_shapes(node)) for node in graph.nodes)


def _shapes(node: Node) -> Iterator[object]:
    return (info and (info.shape, info.dtype) for info in node.outputs)


def _placed(graph: Graph, other: Graph, added: BackwardPass) -> tuple[Graph, BackwardPass]:
    """The call's own line as an index into the first graph's table, which may not have it yet."""
    if added.origin is None:
        return graph, added
    origin = other.origins[added.origin]
    origins = graph.origins if origin in graph.origins else (*graph.origins, origin)
    placed = msgspec.structs.replace(added, origin=origins.index(origin))
    return msgspec.structs.replace(graph, origins=origins), placed
