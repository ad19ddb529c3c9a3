"""Whether a program that computes gradients ever makes a step, and what speaks for why not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.loop_observations import MistakenCall
from gradscope.rules.facts import Facts

FEWEST_UNUSED = 2
"""Backward calls of a program that ends without a step, before that is called a mistake."""

FEWEST_DROPPED = 3
"""Backward calls in a row whose gradients are dropped, before that is called a mistake."""


def dropped(facts: Facts) -> Iterable[MistakenCall]:
    """Steps that find gradients gone, all or some of them: more often than not."""
    kinds = ("dropped", "part dropped")
    return (one for one in facts.seen.mistaken_calls if one.kind in kinds and one.times > one.fine)


class Unstepped(NamedTuple):
    """So many backward calls without any step; where to look, what is to be said, what to do."""

    calls: int
    places: Iterable[int | None]
    words: str
    remedy: str


def unstepped(facts: Facts) -> Unstepped | None:
    """What is known of it where no step was ever made, though optimizers hold all that learns."""
    seen = facts.seen
    # A scaler leaves out, and is right to, steps whose gradients are not finite.
    counted = (step for step in reversed(seen.steps) if not isinstance(step.norm, str))
    streak = len(list(itertools.takewhile(lambda step: step.dropped, counted)))
    ended = seen.never_stepped and seen.calls >= FEWEST_UNUSED
    held = [item.in_optimizer for item in seen.learners if item.leaf is not None]
    if any(step.stepped for step in seen.steps) or not (ended or streak >= FEWEST_DROPPED):
        return None
    if not held or not all(held) or any(dropped(facts)):
        return None
    words, remedy = _reason(facts)
    if streak:
        words = "The gradients are zeroed, and no optimizer has used them."
    # Who never asks the optimizer for anything may take the scheduler for one.
    taken = (one.called for one in seen.schedules if one.called is not None)
    mistaken = None if facts.location(seen.zeroed) else next(taken, None)
    if mistaken is not None:
        words = f"{facts.expression(mistaken)} steps a scheduler, and no optimizer ever steps."
        remedy = (
            "A scheduler sets the learning rate, and changes no parameter: call the optimizer's "
            "`step()` before it."
        )
    places = (seen.guard, mistaken, *(step.origin for step in seen.steps[-1:]))
    return Unstepped(max(streak + 1, ended * seen.calls), places, words, remedy)


def _reason(facts: Facts) -> tuple[str, str]:
    """Why no step was made, by the ``if`` that it is under, and what to do."""
    guard = facts.expression(facts.seen.guard)
    if facts.seen.guard is None:
        return (
            "No optimizer has used the gradients: there was no step.",
            "Call `optimizer.step()` after backward, before the gradients are zeroed; to add up "
            "the gradients of several batches, zero them only after the step.",
        )
    if facts.seen.guards_else:
        return (
            f"No step was made: {guard} was never reached.",
            "Call it whichever way the `if` goes: a scheduler sets the learning rate, and makes no "
            "step.",
        )
    return (
        f"No step was made: {guard} was never true.",
        "Count the batches over all epochs, or make the step also after the last one of each.",
    )
