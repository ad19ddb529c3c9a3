"""Rules about the order of the training loop: backward, unscale, clip, step, zero, scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._disorders import disorders, warning
from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.diagnose._left_out import twin_optimizers
from gradscope.model.loop_observations import Disorder, SummedGradients
from gradscope.model.observations import Severity
from gradscope.words import count

FEWEST_CLIPS = 2
"""Times that clipping finds nothing to clip, before that is called a mistake."""

FEWEST_STALE = 2
"""Times that backward goes through a graph older than the last step, before it is a mistake."""

FEWEST_CAST = 2
"""Backward calls through casts older than the last step, before they are called a mistake."""

FEWEST_ALONE = 2
"""Steps without any backward, before they are called a mistake."""

FEWEST_AGAIN = 2
"""Steps with gradients that the step before has used, before they are called a mistake."""

FEWEST_SCHEDULED = 2
"""Times that a scheduler comes between backward and step, before that is called a mistake."""

FEWEST_WINDOWS = 2
"""Steps after several backward calls each, before these are called an accumulation."""


def clip_unused(facts: Facts) -> Iterable[FindingDraft]:
    """GS506: clipping that is not between backward and step."""
    for entry in disorders(facts, "clip unused"):
        if entry.fine or entry.times < FEWEST_CLIPS:
            continue
        yield warning(
            facts,
            entry,
            f"{_words(facts, entry)} clips no gradient that a step will use.",
            f"{count(entry.times, 'time')}, and each time the gradients were none, or had been "
            f"used by {_place(facts, entry.beside, 'a step')} before",
            "It changes what is in .grad at that moment. Before backward that is empty, and after "
            "the step it is of no use any more: the step itself is made with gradients of any "
            "size.",
            "Clip between `loss.backward()` and `optimizer.step()`.",
        )


def clip_before_unscale(facts: Facts) -> Iterable[FindingDraft]:
    """GS507: clipping of gradients that a GradScaler has still to divide."""
    for entry in disorders(facts, "clip scaled"):
        yield warning(
            facts,
            entry,
            f"{_words(facts, entry)} clips gradients that are still multiplied by the scale of the "
            "GradScaler.",
            f"{count(entry.times, 'time')}; they are divided only at "
            f"{_place(facts, entry.beside, 'scaler.step')}",
            "The loss was multiplied by 65,536 or so, and the gradients with it, so the limit is "
            "smaller by that factor than it says: next to nothing is left of every gradient.",
            "Call `scaler.unscale_(optimizer)` after backward and before clipping.",
        )


def stale_graph(facts: Facts) -> Iterable[FindingDraft]:
    """GS508: a step between a forward pass and its backward."""
    failure = facts.seen.failure
    yield from _stale_part(facts)
    for entry in disorders(facts, "stale graph"):
        # Where torch has noticed it, the tensor that it needed is told.
        if entry.times < FEWEST_STALE or (failure is not None and failure.in_backward):
            continue
        yield warning(
            facts,
            entry,
            "The optimizer steps between a forward pass and its backward.",
            f"{count(entry.parameters, 'parameter')} changed here, and then "
            f"{_place(facts, entry.beside, 'backward')} went through a graph made with the values "
            f"from before; {count(entry.times, 'time')}",
            "The gradient belongs to the old values of the parameters, not to the present ones; "
            "the step itself used the gradient of the iteration before, or none.",
            "Call `loss.backward()` after the forward pass and before `optimizer.step()`; compute "
            "a new loss for every step.",
        )


def _stale_part(facts: Facts) -> Iterable[FindingDraft]:
    """A part of the forward pass that is computed once, for several steps."""
    for entry in disorders(facts, "stale part"):
        if entry.times >= FEWEST_STALE:
            yield warning(
                facts,
                entry,
                f"{_words(facts, entry)} is older than the steps whose backward goes through it.",
                f"{_place(facts, entry.beside, 'backward')} went through it again "
                f"{count(entry.times, 'time')} after {count(entry.parameters, 'parameter')} that "
                "it was computed from had changed",
                "What the steps change does not reach forward: the loss sees the values that were "
                "computed before them, and the gradient belongs to parameters that are no more. "
                "`retain_graph=True` keeps torch from saying so.",
                "Compute it anew in every step, before the loss; or, where it is to stay as it is, "
                "under torch.no_grad().",
            )


def stale_cast(facts: Facts) -> Iterable[FindingDraft]:
    """GS516: a region of autocast around several steps."""
    for entry in disorders(facts, "stale cast"):
        if entry.times >= FEWEST_CAST:
            yield warning(
                facts,
                entry,
                "Autocast is on around several steps, so that forward does not see what they "
                "change.",
                f"{count(entry.times, 'backward call')} went through casts of "
                f"{count(entry.parameters, 'parameter')} that are older than the last step "
                f"({_place(facts, entry.beside, 'of an optimizer')})",
                "Autocast casts each parameter once and keeps the result until its region ends. A "
                "step in between changes the parameter, not the cast: all later losses and "
                "gradients in the region are those of the old values.",
                "Enter autocast for each forward pass, and leave it before backward and step; "
                "or switch the cache off, `torch.autocast(..., cache_enabled=False)`.",
            )


def step_without_backward(facts: Facts) -> Iterable[FindingDraft]:
    """GS509: an optimizer that steps, and backward is never called."""
    if facts.seen.calls:
        return
    for entry in disorders(facts, "step alone"):
        if entry.times >= FEWEST_ALONE:
            yield warning(
                facts,
                entry,
                "The optimizer steps, and nothing has computed a gradient: backward is never "
                "called.",
                f"{count(entry.times, 'step')}, and .grad of all "
                f"{count(entry.parameters, 'parameter')} was None",
                "A step skips parameters without a gradient, so nothing is learned.",
                "Call `loss.backward()` before `optimizer.step()`.",
            )


def step_repeated(facts: Facts) -> Iterable[FindingDraft]:
    """GS513: a step with the gradients that the step before it has used."""
    # An optimizer that a copy has left behind still holds the last gradients it was for.
    left = [one.stepped for one in facts.seen.replaced_models]
    for entry in disorders(facts, "step again"):
        if entry.times >= FEWEST_AGAIN and entry.origin not in left:
            yield warning(
                facts,
                entry,
                "The optimizer steps a second time with the same gradients.",
                f"{count(entry.times, 'time')}; nothing has changed the gradients of "
                f"{count(entry.parameters, 'parameter')} since "
                f"{_place(facts, entry.beside, 'the step before')}",
                "The step is larger than the learning rate says: it goes along a gradient once "
                "more that belongs to where the parameters were before.",
                "Call `optimizer.step()` once for each gradient; delete the other call.",
            )
    # Where what learns is in no optimizer, the second of two that hold the same was meant for that.
    out = any(one.reached and one.in_optimizer is False for one in facts.seen.learners)
    is_told = out and facts.once(twin_optimizers) is not None
    for entry in disorders(facts, "step shared"):
        if entry.times >= FEWEST_AGAIN and not is_told:
            yield warning(
                facts,
                entry,
                "Two optimizers step the same parameters with the same gradients.",
                f"{count(entry.times, 'time')}; nothing has changed the gradients of "
                f"{count(entry.parameters, 'parameter')} since "
                f"{_place(facts, entry.beside, 'the other step')}",
                "What two optimizers hold is changed twice for one backward call, and each keeps a "
                "momentum of its own, which knows nothing of the other's steps.",
                "Give each optimizer other parameters; or call backward again before this step.",
            )


def accumulation_not_divided(facts: Facts) -> Iterable[FindingDraft]:
    """GS510: several mean losses are added up, and not divided by their number."""
    for entry in facts.seen.accumulations:
        if entry.means and entry.steps >= FEWEST_WINDOWS and entry.fewest > 1:
            yield _accumulated(facts, entry)


def _accumulated(facts: Facts, entry: SummedGradients) -> FindingDraft:
    calls = f"{entry.fewest:,}" if entry.fewest == entry.most else f"{entry.fewest:,} or more"
    clipped = f", clipped at {_place(facts, entry.clipped, '')}" if entry.clipped else ""
    # Tasks, too, may be added up, and their sum clipped; a part of a batch is no task.
    severity: Severity = "warning" if entry.clipped and entry.same_loop else "information"
    return facts.finding(
        severity,
        f"The gradients of {calls} backward calls are added up, and their losses are means.",
        location=facts.location(entry.origin),
        evidence=(
            f"{count(entry.steps, 'step')} at {_place(facts, entry.stepped, 'the step')}{clipped}",
        ),
        why=f"The sum is {calls} times the gradient of the whole batch"
        + (", and the limit of the clipping holds for that sum." if entry.clipped else "."),
        remedy="Divide the loss by the number of calls, `(loss / n).backward()`; nothing, if the "
        "sum is meant (several tasks).",
    )


def scheduler_before_step(facts: Facts) -> Iterable[FindingDraft]:
    """GS511: a scheduler that is called before the step it belongs to."""
    for entry in [*disorders(facts, "scheduler first"), *disorders(facts, "scheduler early")]:
        early = entry.kind == "scheduler early"
        # A training that is resumed calls it early, and never again from that line.
        if not entry.fine if early else entry.fine or entry.times < FEWEST_SCHEDULED:
            continue
        yield warning(
            facts,
            entry,
            f"{_words(facts, entry)} comes before the step of its optimizer.",
            f"{count(entry.times, 'time')} before {_place(facts, entry.beside, 'any step')}",
            "The first value of the schedule is skipped, and every step is made with the learning "
            "rate of the next one.",
            "Call `optimizer.step()` first, and `scheduler.step()` after it.",
        )


def _words(facts: Facts, entry: Disorder) -> str:
    return facts.expression(entry.origin) or "this"


def _place(facts: Facts, origin: int | None, otherwise: str) -> str:
    """``optimizer.step()`` at train.py:7."""
    place = facts.location(origin)
    if place is None:
        return otherwise
    return f"{facts.expression(origin)} at {place}".strip()
