"""Rules about the order of a training loop: backward, unscale, clip, step, zero, scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import SummedGradients
from gradscope.model.observations import Severity
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.disorders import out_of_order, placed
from gradscope.rules.questions.optimizers import twin_optimizers
from gradscope.words import count

FEWEST_WINDOWS = 2
"""Steps after several backward calls each, before these are called an accumulation."""


def stale_graph(facts: Facts) -> Iterable[FindingDraft]:
    """GS508: a step between a forward pass and its backward, or a part of the forward pass that is
    computed once, for several steps."""
    yield from out_of_order("stale part")(facts)
    failure = facts.seen.failure
    # Where torch has noticed it, the tensor that it needed is told.
    if failure is None or not failure.in_backward:
        yield from out_of_order("stale graph")(facts)


def step_without_backward(facts: Facts) -> Iterable[FindingDraft]:
    """GS509: an optimizer that steps, and backward is never called."""
    return () if facts.seen.calls else out_of_order("step alone")(facts)


def step_repeated(facts: Facts) -> Iterable[FindingDraft]:
    """GS513: a step with the gradients that the step before it has used."""
    # An optimizer that a copy has left behind still holds the last gradients it was for.
    left = [facts.location(one.stepped) for one in facts.seen.replaced_models]
    again = out_of_order("step again")(facts)
    yield from (one for one in again if one.location is None or one.location not in left)
    # Where what learns is in no optimizer, the second of two that hold the same was meant for that.
    out = any(one.reached and one.in_optimizer is False for one in facts.seen.learners)
    if not (out and facts.once(twin_optimizers) is not None):
        yield from out_of_order("step shared")(facts)


def accumulation_not_divided(facts: Facts) -> Iterable[FindingDraft]:
    """GS510: several mean losses are added up, and not divided by their number."""
    for entry in facts.seen.accumulations:
        if entry.means and entry.steps >= FEWEST_WINDOWS and entry.fewest > 1:
            yield _accumulated(facts, entry)


def _accumulated(facts: Facts, entry: SummedGradients) -> FindingDraft:
    calls = f"{entry.fewest:,}" if entry.fewest == entry.most else f"{entry.fewest:,} or more"
    clipped = f", clipped at {placed(facts, entry.clipped, '')}" if entry.clipped else ""
    # Tasks, too, may be added up, and their sum clipped; a part of a batch is no task.
    severity: Severity = "warning" if entry.clipped and entry.same_loop else "information"
    return facts.finding(
        severity,
        f"The gradients of {calls} backward calls are added up, and their losses are means.",
        location=facts.location(entry.origin),
        evidence=f"{count(entry.steps, 'step')} at "
        f"{placed(facts, entry.stepped, 'the step')}{clipped}",
        why=f"The sum is {calls} times the gradient of the whole batch"
        + (", and the limit of the clipping holds for that sum." if entry.clipped else "."),
        remedy="Divide the loss by the number of calls, `(loss / n).backward()`; nothing, if the "
        "sum is meant (several tasks).",
    )
