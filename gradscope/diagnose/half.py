"""The rule about numbers that are too large for half precision, forward or backward."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.diagnose._facts import Facts, short
from gradscope.diagnose._nonfinite_sources import (
    MOST,
    BackwardSources,
    ForwardSources,
    half_of,
    overflows,
    overflows_backward,
)
from gradscope.diagnose._ops import ACCUMULATING
from gradscope.diagnose.values import aftermath, counts
from gradscope.model.observations import Finding

LIMITS = {"float16": "65,504", "bfloat16": "3.4e38"}


def half_overflow(facts: Facts) -> Iterable[Finding]:
    """GS103: a number too large for half precision, forward or backward."""
    forward = facts.once(ForwardSources)
    groups = facts.by_place(node for node in forward.born if overflows(facts, node))
    for nodes in list(groups.values())[:MOST]:
        yield _overflow_finding(facts, forward, nodes)
    if not forward.roots:
        hidden = facts.by_place(_hidden_overflows(facts, forward))
        for nodes in list(hidden.values())[:1]:
            yield _hidden_finding(facts, nodes)
        backward = facts.once(BackwardSources)
        born = [node for node in backward.born if overflows_backward(facts, node)]
        for nodes in list(facts.by_place(born).values())[:1]:
            yield _gradient_overflow(facts, nodes[0])


def _overflow_finding(facts: Facts, forward: ForwardSources, nodes: list[int]) -> Finding:
    dtype = half_of(facts, nodes[0])
    return msgspec.structs.replace(
        facts.about(nodes[0], "error", f"{facts.words(nodes[0])} overflows in {dtype}."),
        evidence=(
            *counts(facts, nodes),
            f"the largest number of {dtype} is {LIMITS[dtype]}",
            aftermath(facts, forward),
        ),
        why=f"What goes into it is finite, but the result is larger than {dtype} can hold.",
        remedy="Compute this part in float32 (`.float()`, or a block of "
        "`torch.autocast(..., enabled=False)`), scale before it, or use bfloat16.",
    )


def _hidden_overflows(facts: Facts, forward: ForwardSources) -> Iterable[int]:
    """Products and sums in float16 that became infinite, and then were divided by."""
    for node in range(len(facts.graph.nodes)):
        if facts.op(node) not in ACCUMULATING or half_of(facts, node) != "float16":
            continue
        grown = forward.inf[node] and not (forward.nan[node] or forward.meant[node])
        if grown and not forward.sources(node) and node not in forward.intakes:
            yield node


def _hidden_finding(facts: Facts, nodes: list[int]) -> Finding:
    return msgspec.structs.replace(
        facts.about(
            nodes[0],
            "warning",
            f"{facts.words(nodes[0])} overflows in float16, and nobody notices.",
        ),
        evidence=(
            *counts(facts, nodes),
            f"the largest number of float16 is {LIMITS['float16']}",
            "the loss is finite all the same",
        ),
        why="What comes after turns infinity into a finite number, as 1/inf is 0: the result says "
        "nothing of what went in, and no gradient gets past.",
        remedy="Compute this part in float32 (`x.float()`) and cast the result back.",
    )


def _gradient_overflow(facts: Facts, node: int) -> Finding:
    scaled = ".scale(" in facts.expression(facts.graph.nodes[facts.graph.roots[0].node].origin)
    return msgspec.structs.replace(
        facts.about(
            node,
            "information" if scaled else "error",
            f"The gradient overflows in half precision in backward of {facts.words(node)}.",
        ),
        evidence=(f"received {short(facts.received(node)[0].norm)} (2-norm), sent infinity",),
        why="With a gradient scaler this is expected in the first steps; it skips them and lowers "
        "its scale."
        if scaled
        else "A gradient larger than 65,504 has no float16.",
        remedy="Nothing, if it happens rarely."
        if scaled
        else "Use torch.amp.GradScaler, or keep this part in float32.",
    )
