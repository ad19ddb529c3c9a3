"""Rules about parameters that are trained, and keep nothing of it: made anew, changed by less than
their precision, or held beyond the limits of a clamp."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import LimitedParameter, RemadeParameters
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.parameters import same_line
from gradscope.words import count, listed

FEWEST_REMADE = 3
"""Backward calls that reach parameters made anew, before that is called a mistake."""

FEWEST_MODELS = 5
"""The same where an optimizer steps them: whoever compares models makes a few anew."""

FEWEST_LOOKS = 3
"""Steps that are compared before anything is said of them."""

MOST = 4
"""Parameters clamped at one line that are listed."""

STILL = 0.9
"""The share of elements that a step does not change though they have a gradient."""


def remade_parameter(facts: Facts) -> Iterable[FindingDraft]:
    """GS312: a parameter that is made anew for each backward call."""
    # A Parameter made of what forward has computed is a cut, and told as one.
    cuts = [cut.origin for cut in facts.seen.cuts if cut.function in ("Parameter", "deepcopy")]
    groups: dict[tuple[str, str, bool], list[RemadeParameters]] = {}
    for entry in facts.seen.remade:
        fewest = FEWEST_MODELS if entry.stepped else FEWEST_REMADE
        if entry.times < fewest or any(same_line(facts, entry.origin, cut) for cut in cuts):
            continue
        place = None if entry.origin is None else facts.graph.origins[entry.origin]
        if place is not None and (entry.alone or not entry.stepped):
            groups.setdefault((place.file, place.function, entry.stepped), []).append(entry)
    for entries in groups.values():
        yield _remade(facts, entries)


def _remade(facts: Facts, entries: list[RemadeParameters]) -> FindingDraft:
    """One finding for all that one function makes anew."""
    places = [place for entry in entries if (place := facts.location(entry.origin)) is not None]
    entry = entries[places.index(min(places, key=lambda place: place.line))]
    others = [facts.expression(one.origin) for one in entries if one is not entry]
    words = facts.expression(entry.origin) or "This line"
    return facts.warning(
        f"{words} makes new parameters for every backward call, so none of them ever learns.",
        location=facts.location(entry.origin),
        subject=facts.variable(entry.origin),
        evidence=(
            f"parameters made here got their first gradient in {entry.times:,} of "
            f"{count(entry.calls, 'backward call')}, and never a second one",
            *([f"also made again: {listed(others)}"] if others else []),
        ),
        why="Each is random again, and what the one before has learned is gone with it."
        if entry.stepped
        else "Each is random again, and no optimizer holds it; the gradient it gets is never used.",
        remedy="Make layers and parameters once, in `__init__` or before the loop, and the "
        "optimizer after them.",
    )


def step_changes_nothing(facts: Facts) -> Iterable[FindingDraft]:
    """GS313: steps that are smaller than the precision of the parameters."""
    for entry in facts.seen.effects:
        if entry.looks < FEWEST_LOOKS or entry.still < STILL * entry.asked:
            continue
        words = facts.expression(entry.origin) or "The step"
        is_half = entry.dtype in ("bfloat16", "float16")
        step, cast = facts.location(entry.origin), facts.location(entry.cast)
        where = f", at {step}" if step and cast else ""
        yield facts.warning(
            f"{words} changes next to nothing: the steps are smaller than {entry.dtype} can tell.",
            location=cast or step,
            evidence=(
                f"{entry.still / entry.asked:.1%} of the elements with a gradient stayed exactly "
                f"as they were, in {count(entry.looks, 'step')}{where}",
                *([f"the parameters are made {entry.dtype} here"] if cast and is_half else []),
            ),
            why="bfloat16 has 8 significant bits, float16 11: a change by less than a 500th (a "
            "4000th) of a number is rounded away, however often it is made."
            if is_half
            else "float32 has 24 significant bits (float64 53): a change by less than a 30 "
            "millionth of a number is rounded away, however often it is made.",
            remedy="Give the optimizer a larger learning rate: this one is below 1e-6."
            if not is_half
            else "Keep the parameters in float32 and compute under torch.autocast; or use an "
            "optimizer that keeps float32 copies, or a larger learning rate.",
        )


def held_at_limit(facts: Facts) -> Iterable[FindingDraft]:
    """GS319: elements of a parameter beyond the limits of a clamp in forward."""
    places: dict[int | None, list[LimitedParameter]] = {}
    for one in facts.seen.limited:
        places.setdefault(one.origin, []).append(one)
    for origin, found in places.items():
        names = listed([one.name for one in found], 3)
        beyond = sum(one.beyond for one in found)
        yield facts.warning(
            f"{count(beyond, 'element')} of {names} lie{'s' * (beyond == 1)} beyond the limits of "
            f"{facts.expression(origin) or 'a clamp'}, and get{'s' * (beyond == 1)} no gradient "
            "any more.",
            location=facts.location(origin),
            subject=names,
            evidence=tuple(
                f"{one.name}: {one.beyond:,} of {one.count:,} elements" for one in found[:MOST]
            ),
            why="The derivative of a clamp is 0 beyond its limits: a step that has carried an "
            "element over one is never taken back, whatever the loss says.",
            remedy="Clamp the parameter itself after each step, under torch.no_grad "
            "(`p.clamp_(low, high)`); keep it inside by a function that has a slope everywhere "
            "(`low + (high - low) * torch.sigmoid(p)`); or let the gradient pass, "
            "`p + (p.clamp(low, high) - p).detach()`.",
        )
