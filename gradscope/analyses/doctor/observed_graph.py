"""What is known of the forward values of a graph that a report will show."""

from __future__ import annotations

import msgspec

from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.autograd.elements import readable
from gradscope.autograd.nodes import leaf_of
from gradscope.model.report import BackwardPass, Graph, Node


def with_counts(listener: DoctorListener, graph: Graph, sequences: dict[int, int]) -> Graph:
    """The graph, with the numbers of non-finite elements in the forward tensors."""
    counts = listener.values_seen.counts
    if not counts:
        return graph
    nodes = list(graph.nodes)
    for (sequence, output), (nan, inf) in counts.items():
        position = sequences.get(sequence)
        if position is not None:
            nodes[position] = _counted(nodes[position], output, nan, inf)
    return msgspec.structs.replace(graph, nodes=tuple(nodes))


def with_zeros(graph: Graph, passed: BackwardPass, watch: FullCapture) -> Graph:
    """The graph, with the norms of those leaves that got nothing but zeros, and hold nothing
    else."""
    leaves = list(graph.leaves)
    for index, leaf in enumerate(leaves):
        tensor = leaf_of(watch.walked.nodes[leaf.node])
        is_starved = passed.upstream[leaf.node] and passed.at(leaf.node).state == "zero"
        if is_starved and tensor is not None and readable(tensor) and not tensor.any():
            leaves[index] = msgspec.structs.replace(leaf, norm=0.0)
    return msgspec.structs.replace(graph, leaves=tuple(leaves))


def _counted(node: Node, output: int, nan: int, inf: int) -> Node:
    outputs = list(node.outputs)
    info = outputs[output] if output < len(outputs) else None
    if info is not None:
        outputs[output] = msgspec.structs.replace(info, nan=nan, inf=inf)
    return msgspec.structs.replace(node, outputs=tuple(outputs))
