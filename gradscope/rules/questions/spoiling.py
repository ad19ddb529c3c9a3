"""Rules about what a step of the optimizer itself does to the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradscope.model.loop_observations import SpoilingStep, SpoiltParameter
from gradscope.model.observations import Step
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.advice import Advice
from gradscope.words import count, joined, listed

_LARGEST = {"float16": "65,504", "bfloat16": "3.4e38", "float32": "3.4e38", "float64": "1.8e308"}

_ROUNDED = Advice(
    "It divides by the root of a running mean of squared gradients, to which eps is added so that "
    "this is never 0. In {dtype} eps is 0, and so are the squares of small gradients: 0/0 is NaN, "
    "and anything else divided by 0 is infinite.",
    "Keep the parameters in float32, and compute in half precision under `torch.autocast` with a "
    "GradScaler; or give an eps that {dtype} can hold, such as `eps=1e-4`.",
)
_OVERFLOWS = Advice(
    "The update, or what the optimizer computes on the way to it, is larger than {dtype} can hold "
    "({largest}), or divides 0 by 0.",
    "Lower the learning rate, clip the gradients (`torch.nn.utils.clip_grad_norm_`), and keep the "
    "parameters in float32.",
)
_NO_NUMBER = Advice(
    "A step multiplies what it subtracts by the learning rate: whatever the gradients are, nothing "
    "finite comes of it.",
    "Look at what computes the rate, a schedule above all: 0/0 where a warm-up of 0 steps is "
    "divided by, a power of a negative number.",
)


FEWEST_GROWTHS = 2
"""Steps in a row that make the loss larger, before what follows is called diverging."""

GROWTH = 3.0
"""What each of them multiplies it by, at least."""

ALTOGETHER = 1e4
"""What all of them do, at least."""


def training_diverges(facts: Facts) -> Iterable[FindingDraft]:
    """GS107: steps that make the loss larger and larger, until it is not finite."""
    steps = [one for one in facts.seen.steps if one.accumulates]
    steps = [one for one in steps if one.origin == steps[-1].origin]
    # Where the step before explains it, as a graph through which gradients explode, that is shown.
    if not steps or steps[-1].number != facts.step:
        return
    last, losses = steps[-1], _rising(steps)
    if not any(isinstance(one, str) for one in (last.loss, last.norm)):
        return
    if len(losses) <= FEWEST_GROWTHS or losses[-1] < ALTOGETHER * losses[0]:
        return
    made = facts.seen.optimizers[0] if len(facts.seen.optimizers) == 1 else None
    end = last.loss if isinstance(last.loss, str) else last.norm
    told = [*map(short, losses[-5:]), str(end)]
    yield facts.finding(
        "error",
        "The training diverges: each step makes the loss larger, until it is not finite.",
        location=facts.location(made) or facts.location(last.origin),
        evidence=(f"the loss of the last backward calls: {', '.join(told)}",),
        why="The steps are so large that they jump over the minimum, farther each time. What is "
        "not finite now was computed of parameters that have become too large.",
        remedy="Lower the learning rate, by a factor of 10 at first; begin with a smaller one "
        "(warm-up), or clip the gradients (`torch.nn.utils.clip_grad_norm_`).",
        of_values=True,
    )


def _rising(steps: Sequence[Step]) -> list[float]:
    """The losses before the end, from where on each step has made them so much larger."""
    found: list[float] = []
    after = steps[-1]
    for one in reversed(steps[:-1]):
        if not isinstance(one.loss, float) or not one.loss or not after.stepped:
            break
        if found and found[-1] < GROWTH * abs(one.loss):
            break
        found.append(abs(one.loss))
        after = one
    return found[::-1]


def nonfinite_step(facts: Facts) -> Iterable[FindingDraft]:
    """GS106: a step that makes NaN or infinity of finite parameters and finite gradients."""
    for step in facts.seen.spoiling_steps:
        if step.parameters:
            yield _finding(facts, step)


def _finding(facts: Facts, step: SpoilingStep) -> FindingDraft:
    first = step.parameters[0]
    rounded = [setting for setting in step.settings if setting.is_zero]
    advice = _ROUNDED if any(one.name == "eps" for one in rounded) else _OVERFLOWS
    is_no_number = any(one.name == "lr" and isinstance(one.value, str) for one in step.settings)
    if is_no_number:
        advice = _NO_NUMBER
    words = {"dtype": first.dtype, "largest": _LARGEST.get(first.dtype, "a finite number")}
    place = step.origin if step.made is None else step.made
    names = [parameter.name for parameter in step.parameters]
    leaves = [facts.graph.leaves[one.leaf].node for one in step.parameters if one.leaf is not None]
    called = facts.expression(step.origin) or "step()"
    line = facts.location(step.origin)
    at = f" ({line})" if line is not None else ""
    return facts.finding(
        "error",
        f"The learning rate of {step.optimizer} is not a finite number."
        if is_no_number
        else f"A step of {step.optimizer} makes NaN or infinity of finite parameters and "
        "gradients.",
        location=facts.location(_schedule(facts) if is_no_number else place),
        subject=names[0],
        evidence=(
            f"{called}{at} after backward call {step.call} spoils "
            f"{count(len(set(names)), 'parameter')}: {listed(names)}",
            _counts(first),
            *(f"{one.name}={short(one.value)} is 0 in {first.dtype}" for one in rounded),
            *_settings(step),
        ),
        why=advice.why.format(**words),
        remedy=advice.remedy.format(**words),
        step=step.call,
        nodes=facts.reaching(leaves),
    )


def _schedule(facts: Facts) -> int | None:
    """The only scheduler, which sets the rate; or the only optimizer."""
    made = [one.origin for one in facts.seen.schedules] or list(facts.seen.optimizers)
    return made[0] if len(made) == 1 else None


def _counts(one: SpoiltParameter) -> str:
    parts = [f"{one.nan:,} NaN" * (one.nan > 0), f"{one.inf:,} infinite" * (one.inf > 0)]
    gradient = "" if one.gradient is None else f"; its gradient is finite, {short(one.gradient)}"
    amount = joined(part for part in parts if part)
    name = one.name or "the first"
    return f"{name}: {amount} of {count(one.count, 'element')}, {one.dtype}{gradient}"


def _settings(step: SpoilingStep) -> Iterable[str]:
    kept = [f"{one.name}={short(one.value)}" for one in step.settings if not one.is_zero]
    if kept:
        yield f"{step.optimizer} with {', '.join(kept)}"
