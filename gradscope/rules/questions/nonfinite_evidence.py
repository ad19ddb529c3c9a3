"""What a finding about NaN and infinity says of them: how many there are, and what became of the
loss."""

from __future__ import annotations

from gradscope.rules.facts import Facts, elements, short
from gradscope.rules.questions.nonfinite_sources import ForwardSources
from gradscope.words import count


def amounts(nan: int, inf: int) -> list[str]:
    """``["3 NaN", "14 infinite"]``, without what there is none of."""
    return [f"{nan:,} NaN"] * (nan > 0) + [f"{inf:,} infinite"] * (inf > 0)


def counts(facts: Facts, nodes: list[int]) -> list[str]:
    """How many elements of a result are not finite: ``Log: 14 of 256 elements infinite``."""
    node = _counted(facts, nodes[0])
    lines = [
        f"{facts.op(node)}: {', '.join(amounts(output.nan, output.inf))} of "
        f"{count(elements(output.shape), 'element')}, {output.dtype}"
        for output in facts.graph.nodes[node].outputs
        if output is not None and (output.nan or output.inf)
    ]
    if len(nodes) > 1:
        lines.append(f"the same happens {len(nodes):,} times at this place")
    return lines


def _counted(facts: Facts, node: int) -> int:
    """The node whose result was counted: of a composite call that of the last."""
    nodes = facts.graph.nodes
    level = [node]
    while level:
        for one in level:
            if any(out is not None and (out.nan or out.inf) for out in nodes[one].outputs):
                return one
        above = (up for one in level for up in facts.above(one))
        level = [up for up in above if nodes[up].origin == nodes[node].origin]
    return node


def aftermath(facts: Facts, forward: ForwardSources) -> str:
    """What became of the loss, and of how many results before it."""
    loss = facts.loss
    said = f"the loss is {loss}, " if isinstance(loss, str) else ""
    return f"{said}{count(forward.affected, 'node')} on the way to it not finite"


def turned(facts: Facts, node: int) -> str:
    """What a node received, and how much that is not finite it made of it."""
    norm = next((info.norm for info in facts.received(node) if info.norm is not None), None)
    bad = [info for _, info in facts.sent(node) if info.state == "non-finite"]
    nan, inf = sum(info.nan for info in bad), sum(info.inf for info in bad)
    return f"received {short(norm)} (2-norm), sent {nan:,} NaN and {inf:,} infinite elements"
