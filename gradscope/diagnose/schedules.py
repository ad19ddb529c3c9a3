"""Rules about schedulers: how often they are called, beside what they are made for, and what those
are given that wait for a number to get better."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.model.loop_observations import ScheduleUse
from gradscope.words import count

FEWEST_STEPS = 20
"""Steps of an optimizer whose scheduler is never called, before that is told."""

FEWEST_EPOCHS = 3
"""Epochs without a call of the scheduler, before that is called a mistake."""

FEWEST_EACH = 2
"""Calls for each step, and steps for each call, from which on the two are not one and the same."""

NEAR = 0.1
"""A schedule is made for what there was so many of, up to this share."""

_OF_STEPS = ("OneCycleLR",)
"""Schedules that are in units of steps by what they are."""

_WHOLE = ("CosineAnnealingLR", "PolynomialLR", "LambdaLR")
"""Schedules that are to last for all of a training, not for a warm-up."""

_OFF = ("SWALR",)
"""Schedules of a last part of a training."""

_RISING = {"acc", "accuracy", "auc", "auroc", "f1", "iou", "miou", "bleu", "psnr", "ssim", "dice"}
_RISING |= {"reward", "recall", "precision"}
_FALLING = {"loss", "losses", "err", "error", "errors", "mse", "mae", "rmse", "nll", "ppl"}
_FALLING |= {"perplexity", "wer", "cer"}

_WHY = "The rate of each step is read from the schedule, which counts the calls of the scheduler."


def schedule_miscounted(facts: Facts) -> Iterable[FindingDraft]:
    """GS541: a scheduler that counts something else than what it is made for."""
    for one in facts.seen.schedules:
        wrong = _wrong_mode(facts, one)
        if wrong is not None:
            yield wrong
        # What is stopped might have called it later, and made more steps.
        elif facts.is_over:
            found = _never(facts, one) or _too_few(facts, one) or _too_many(facts, one)
            if found is not None:
                yield found


def _never(facts: Facts, one: ScheduleUse) -> FindingDraft | None:
    if one.calls or one.shared or one.steps < FEWEST_STEPS or one.kind in _OFF:
        return None
    epochs = f", in {count(one.epochs, 'epoch')}" if one.epochs else ""
    return facts.finding(
        "warning" if one.epochs >= FEWEST_EPOCHS else "information",
        "The scheduler is never called: the learning rate stays as it is.",
        location=facts.location(one.origin),
        subject=facts.variable(one.origin),
        evidence=f"{count(one.steps, 'step')} of its optimizer{epochs}",
        why="A scheduler sets the rate when its `step()` is called, and not by itself.",
        remedy="Call `scheduler.step()` after each epoch, or after each step, whichever its "
        "settings count.",
    )


def _too_few(facts: Facts, one: ScheduleUse) -> FindingDraft | None:
    """Made for what there is more of than calls."""
    if not one.calls or 2 * one.calls > one.length or _is_of_epochs(facts, one):
        return None
    steps, most = one.between
    is_list = one.kind == "MultiStepLR" and one.steps <= 2 * one.length <= 2.2 * one.steps
    if most >= FEWEST_EACH and (is_list or _is_near(one.length, one.steps)):
        what, remedy = "steps of the optimizer", "after each `optimizer.step()`, in the inner loop"
    elif most >= FEWEST_EACH and steps == most == one.length:
        what, remedy = "steps of one epoch", "at each step; or make it for the number of epochs"
    elif most == 1 and one.backwards >= 2 * one.steps and _is_near(one.length, one.backwards):
        what = "backward calls"
        remedy = "as it is, and make it for the number of steps: that of the batches divided by "
        remedy += "those that are added up for a step"
    else:
        return None
    # By chance a number that is written out may be the same.
    is_number = one.kind not in _OF_STEPS and _is_written(facts, one)
    return facts.finding(
        "information" if is_number else "warning",
        f"The scheduler is called {count(one.calls, 'time')}, and made for {one.length:,} calls: "
        f"it counts the {what}.",
        location=facts.location(one.called if what == "steps of the optimizer" else one.origin),
        subject=facts.variable(one.origin),
        evidence=f"made by {facts.expression(one.origin)}{facts.at(one.origin)}, called by "
        f"{facts.expression(one.called)}{facts.at(one.called)}; {count(one.steps, 'step')}, "
        f"{count(one.backwards, 'backward call')}",
        why=f"{_WHY} All steps are made with the rates of its beginning.",
        remedy=f"Call the scheduler {remedy}.",
    )


def _too_many(facts: Facts, one: ScheduleUse) -> FindingDraft | None:
    """Called more often than there is something to set the rate for, or than it is made for."""
    fewest, most = one.each
    if fewest == most >= FEWEST_EACH and one.steps > FEWEST_EACH:
        if one.length and _is_near(one.length, one.calls):
            return None
        severity = "warning" if _is_near(one.length, one.steps) else "information"
        message = f"The scheduler is called {most} times for each step of its optimizer."
        location, remedy = one.called, "Call it once, after `optimizer.step()`."
    elif not one.length or one.calls < 2 * one.length or one.kind not in _WHOLE:
        return None
    elif one.between[1] == 1 and (
        one.length == one.epochs >= FEWEST_EACH or "epoch" in facts.expression(one.origin).lower()
    ):
        severity, location = "warning", one.called
        message = f"The scheduler is called at each step, and made for the {one.length:,} epochs."
        remedy = "Call it after each epoch; or make it for the number of steps."
    elif one.kind == "CosineAnnealingLR":
        severity, location = "information", one.origin
        message = "The learning rate rises again after the end of its schedule."
        remedy = "Make it for as many calls as there are; or take CosineAnnealingWarmRestarts, "
        remedy += "if the rate is to start anew."
    else:
        return None
    return facts.finding(
        "warning" if severity == "warning" else "information",
        message,
        location=facts.location(location),
        subject=facts.variable(one.origin),
        evidence=f"{count(one.calls, 'call')}, {count(one.steps, 'step')}"
        + f"; made for {one.length:,} calls{facts.at(one.origin)}" * bool(one.length),
        why=_WHY,
        remedy=remedy,
    )


def _wrong_mode(facts: Facts, one: ScheduleUse) -> FindingDraft | None:
    """One that waits for the largest number and is given a loss, or the other way round."""
    given = "" if one.called is None else facts.graph.origins[one.called].expression
    words = _words(given) if one.mode in ("min", "max") else set()
    rises, falls = words & _RISING, words & _FALLING
    wrong = falls if one.mode == "max" else rises
    if not wrong or (rises and falls):
        return None
    better = "smaller" if falls else "larger"
    return facts.warning(
        f"The scheduler waits for {'larger' if falls else 'smaller'} numbers, and is given one "
        f"that gets {better}.",
        location=facts.location(one.origin),
        subject=facts.variable(one.origin),
        evidence=f"mode='{one.mode}', and {facts.expression(one.called)}{facts.at(one.called)}",
        why="It lowers the learning rate where the number has not become better for a while: here "
        "while the training goes well.",
        remedy=f"Say `mode='{'min' if falls else 'max'}'`.",
    )


def _words(call: str) -> set[str]:
    """The words in the names of what a call is given first; none where a sign may be turned."""
    values = _arguments(call)
    nodes = list(ast.walk(values[0])) if values else []
    if any(isinstance(node, (ast.Sub, ast.USub)) for node in nodes):
        return set()
    names = [
        getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", "")
        for node in nodes
    ]
    text = " ".join(name for name in names if type(name) is str)
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").lower().split())


def _arguments(call: str) -> list[ast.expr]:
    """What a call is given, in its text; nothing where that is none."""
    try:
        made = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [*made.args, *(one.value for one in made.keywords)] if type(made) is ast.Call else []


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= NEAR * max(one, other)


def _is_of_epochs(facts: Facts, one: ScheduleUse) -> bool:
    """Whether it is made for a number that is called one of epochs, and by nothing multiplied: it
    has ended early, and what else there is so many of is so by chance."""
    settings = _arguments(facts.expression(one.origin).strip("`"))
    return one.kind not in _OF_STEPS and any(
        "epoch" in (text := ast.unparse(value).lower())
        and not re.search("step|batch|iter|per_", text)
        and not any(isinstance(node, (ast.Mult, ast.Call)) for node in ast.walk(value))
        for value in settings
    )


def _is_written(facts: Facts, one: ScheduleUse) -> bool:
    """Whether the length stands as a number where the scheduler is made."""
    text = facts.expression(one.origin).replace("_", "")
    return re.search(rf"(?<![\w.]){one.length}(?![\w.])", text) is not None
