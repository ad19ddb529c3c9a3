"""Rules about what a loop computes and throws away again: what an optimizer has learned of its
steps, losses that backward never sees, parameters that are put back."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._disorders import disorders, warning
from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.model.loop_observations import OrderKind
from gradscope.words import count

FEWEST_ANEW = 3
"""Times that a thing with a state is made anew, before that is called a mistake."""

FEW_USES = 10
"""Steps of each of them, beyond which it is a new start: the next task, the next image."""

FEW_CALLS = 2
"""The same of a scheduler, which may be made for so many calls."""

FEWEST_LEFT = 2
"""Backward calls behind a loop, before they are called a mistake."""

FEWEST_BACK = 3
"""Times that parameters are put back, before that is called a mistake."""

MOST_BETWEEN = 20
"""Steps in between, beyond which it is a new start."""

_ANEW: dict[OrderKind, tuple[str, int]] = {
    "optimizer anew": ("optimizer", FEW_USES),
    "scaler anew": ("GradScaler", FEW_USES),
    "scheduler anew": ("scheduler", FEW_CALLS),
}
"""What it is about, and the uses of each one beyond which that is a new start."""


def state_lost(facts: Facts) -> Iterable[FindingDraft]:
    """GS522: an optimizer, a scaler or a scheduler that is made anew again and again."""
    for entry in facts.seen.disorders:
        name, most = _ANEW.get(entry.kind, ("", 0))
        if not name or entry.times < FEWEST_ANEW or entry.parameters > most or entry.fine > 1:
            continue
        used = facts.location(entry.beside)
        where = f", at {used}" if used else ""
        yield warning(
            facts,
            entry,
            f"The {name} is made anew after every {'few ' * (entry.parameters > 1)}"
            f"use{'s' * (entry.parameters > 1)}, and what it has learned is lost.",
            f"{count(entry.times, 'time')} for the same parameters; the one before had been used "
            f"{count(entry.parameters, 'time')} at most{where}",
            "Momentum and the running means of Adam live in the optimizer, the scale in the "
            "GradScaler, and the place in a schedule in the scheduler: each new one begins with "
            "none.",
            f"Make the {name} once, before the loop.",
            facts.variable(entry.origin),
        )


def losses_dropped(facts: Facts) -> Iterable[FindingDraft]:
    """GS523: backward of the last loss of a loop only."""
    for entry in disorders(facts, "losses dropped", FEWEST_LEFT):
        where = facts.at(entry.beside)
        yield warning(
            facts,
            entry,
            "backward is called for the last loss of a loop only; the others are dropped.",
            f"the loop around the loss{where} was run through {count(entry.times, 'time')}, and "
            f"left up to {count(entry.parameters, 'graph')} of forward without backward each time",
            "Each round gives the variable another loss; what is left behind the loop is the last. "
            "The forward passes of all others are made in vain: nothing is learned from them.",
            "Call backward (and zero_grad and step) inside of the loop; or add the losses up.",
            facts.variable(entry.origin),
        )


def training_undone(facts: Facts) -> Iterable[FindingDraft]:
    """GS524: parameters that are put back between the steps of one optimizer."""
    for entry in disorders(facts, "put back", FEWEST_BACK):
        if entry.parameters > MOST_BETWEEN or entry.fine:
            continue
        where = facts.at(entry.beside)
        yield warning(
            facts,
            entry,
            "What the steps have learned is overwritten here, again and again.",
            f"{count(entry.times, 'time')}, with at most {count(entry.parameters, 'step')}{where} "
            "in between; by random numbers, or by the same as the time before",
            "The optimizer goes on from the same start each time, so nothing is left of its steps.",
            "Initialise or load the model once, before the loop.",
            facts.variable(entry.origin),
        )
