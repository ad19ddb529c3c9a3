"""What a finding about NaN and infinity says of them: how many, and how they come to the loss."""

from __future__ import annotations

from gradscope.rules.facts import Facts, elements
from gradscope.rules.questions.nonfinite_sources import ForwardSources
from gradscope.words import count

MOST_LINES = 6
"""Lines that tell the way of a value to the loss."""


def counts(facts: Facts, nodes: list[int]) -> list[str]:
    """How many elements of a result are not finite: ``Log: 14 of 256 elements infinite``."""
    lines = []
    for output in facts.graph.nodes[_counted(facts, nodes[0])].outputs:
        if output is None or not (output.nan or output.inf):
            continue
        parts = [f"{output.nan:,} NaN" * (output.nan > 0), f"{output.inf:,} infinite"]
        words = ", ".join(part for part in parts[: 1 + (output.inf > 0)] if part)
        size = elements(output.shape)
        op = facts.op(_counted(facts, nodes[0]))
        lines.append(f"{op}: {words} of {count(size, 'element')}, {output.dtype}")
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


def way_lines(facts: Facts, forward: ForwardSources, node: int) -> list[str]:
    """The expressions through which a source comes to the loss, one a line; of very many the first
    and the last."""
    nodes, origins = facts.graph.nodes, facts.graph.origins
    start = nodes[node].origin
    places: dict[tuple[str, int], int] = {}
    for origin in (nodes[step].origin for step in forward.way(node)):
        if origin is not None and origin != start:
            # Of several expressions of a line the last holds the others, as a rule.
            places[origins[origin].file, origins[origin].line] = origin
    lines = []
    for (file, line), origin in places.items():
        here = start is not None and file == origins[start].file
        at = f"line {line}" if here else f"{file}:{line}"
        lines.append(f"→ {at} {facts.expression(origin)}".rstrip())
    if len(lines) <= MOST_LINES:
        return lines
    half = MOST_LINES // 2
    left_out = len(lines) - 2 * half + 1
    return [*lines[:half], f"→ {left_out:,} more", *lines[1 - half :]]
