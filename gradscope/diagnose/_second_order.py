"""Gradients whose own graph is asked for, and then thrown away."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.diagnose._parameters import same_line


def wasted_graphs(facts: Facts, explained: Iterable[int]) -> Iterable[FindingDraft]:
    """Inner steps (MAML) through ``.data`` or under ``no_grad``.

    Args:
        facts: the report.
        explained: the cuts that other findings are about.
    """
    told = [facts.seen.cuts[index].origin for index in explained]
    for entry in facts.seen.wasted_graphs:
        if any(same_line(facts, entry.origin, one) for one in told):
            continue
        told.append(entry.origin)
        where = facts.at(entry.asked)
        place = facts.expression(entry.origin) or entry.function
        yield facts.finding(
            "warning",
            f"{place} cuts the gradient of a gradient off: the step is made outside of the graph.",
            location=facts.location(entry.origin),
            evidence=(
                f"create_graph=True asks for that graph{where}, and nothing goes through it",
            ),
            why="What is written through .data or under no_grad has no history, so a loss after it "
            "knows nothing of the step: second-order terms are missing.",
            remedy="Make the step out of place, `fast = p - lr * g`, and call the model with the "
            "new tensors (torch.func.functional_call); or leave create_graph out, where "
            "first-order gradients are meant.",
        )
