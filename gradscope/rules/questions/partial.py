"""Rules about cuts that take a part of what learns: a term of the loss, a part of a layer.

No parameter is without a gradient there, and yet some of it does not learn what it is there for.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Cut, LostTerm
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import (
    at_place,
    constant_losses,
    name_of,
    place_of,
    why_and_remedy,
)
from gradscope.rules.questions.parameters import grouped
from gradscope.words import count, listed

MOST_TERMS = 4
"""Terms of a loss that are listed."""


def lost_term(facts: Facts) -> Iterable[FindingDraft]:
    """GS310: a term of the loss that gives no gradient to anything that the step after it
    changes, though it was computed from such parameters."""
    places: dict[int | None, list[LostTerm]] = {}
    for lost in facts.seen.lost_terms:
        # What adds a plain number to the loss is GS303.
        if lost.origin is not None:
            places.setdefault(place_of(facts.seen.cuts[lost.cut]), []).append(lost)
    for place, found in places.items():
        lost, cut = found[0], facts.seen.cuts[found[0].cut]
        why, remedy = why_and_remedy(cut)
        yield facts.warning(
            f"{at_place(facts, cut)}{name_of(cut)} takes {facts.expression(lost.origin)} out of "
            "the gradient: "
            + (
                "what it was drawn from learns nothing from this term of the loss."
                if cut.twin
                else "this term of the loss moves nothing that the next step changes."
            ),
            location=facts.location(place),
            subject=listed(_modules(facts, lost.leaves), 3),
            evidence=(
                f"the next step changes {listed(lost.leaves)}: the term was computed from them, "
                "and gives them no gradient",
                *_terms(facts, lost),
            ),
            why=why,
            remedy=remedy,
            step=lost.call,
        )


def constant_loss(facts: Facts) -> Iterable[FindingDraft]:
    """GS316: a loss function that is added to the loss, and compares nothing that has history."""
    for cut in facts.once(constant_losses):
        yield _constant(facts, cut)


def _constant(facts: Facts, cut: Cut) -> FindingDraft:
    place = facts.location(cut.made) or facts.location(cut.origin)
    words = facts.expression(cut.origin) or cut.function
    where = facts.at(cut.origin)
    name = facts.variable(cut.made) or facts.expression(cut.made)
    evidence = [
        f"none of its operands has history; it is called{where}",
        *([f"its first operand, the prediction, is {name}"] if name else []),
        *(["prediction and target hold the same numbers"] if cut.equal else []),
        *_sources(facts, cut),
    ]
    return facts.warning(
        f"{words} compares constants: it adds to the loss and nothing to the gradient.",
        location=place,
        subject=facts.variable(cut.origin),
        evidence=evidence,
        why="Neither its prediction nor its target was computed from anything that learns, with "
        "gradients on.",
        remedy="Give it the result of what is to learn: is another variable meant?",
    )


def _sources(facts: Facts, cut: Cut) -> Iterable[str]:
    """Where the operands of a loss of constants lost their history."""
    places = dict.fromkeys(place_of(facts.seen.cuts[number]) for number in cut.sources)
    told = [f"{facts.expression(at)} ({one})" for at in places if (one := facts.location(at))]
    if told:
        yield f"history ended at {listed(told, MOST_TERMS)}"


def _terms(facts: Facts, lost: LostTerm) -> Iterable[str]:
    """What each term of the loss gives a gradient."""
    for term in lost.terms[:MOST_TERMS]:
        reached = listed(_modules(facts, term.leaves), 3) or "nothing"
        yield f"{facts.expression(term.origin) or 'a term'} gives a gradient to {reached}"
    if len(lost.terms) > MOST_TERMS:
        yield f"and {count(len(lost.terms) - MOST_TERMS, 'more term')}"


def _modules(facts: Facts, names: Iterable[str]) -> list[str]:
    """The largest modules that these leaves are all of, and the leaves of none."""
    wanted = set(names)
    chosen = [learner for learner in facts.seen.learners if learner.name in wanted]
    known = {learner.name for learner in chosen}
    return [
        *(path for path, _ in grouped(facts, chosen)),
        *(name for name in names if name not in known),
    ]


def part_cut_off(facts: Facts) -> Iterable[FindingDraft]:
    """GS311: a part of what a layer gives that reaches the loss only through a cut."""
    places: dict[int | None, list[Cut]] = {}
    for cut in facts.seen.cuts:
        if cut.feeds_graph and _is_partial(facts, cut):
            places.setdefault(place_of(cut), []).append(cut)
    for place, cuts in places.items():
        yield _finding(facts, place, cuts)


def _is_partial(facts: Facts, cut: Cut) -> bool:
    """Whether it takes a part of something that an optimizer is to change."""
    spared = {item.name for item in facts.seen.learners if item.in_optimizer is False}
    taken = [part.leaf for part in cut.parts] or (cut.leaves if cut.joined else ())
    return not spared.issuperset(taken)


def _finding(facts: Facts, place: int | None, cuts: list[Cut]) -> FindingDraft:
    cut = cuts[0]
    parts = {part.leaf: part for each in cuts for part in each.parts}
    leaves = list(parts) or [name for each in cuts for name in each.leaves]
    why, remedy = why_and_remedy(cut)
    modules = listed(_modules(facts, list(dict.fromkeys(leaves))), 3)
    return facts.warning(
        f"{at_place(facts, cut)}{name_of(cut)} cuts a part of {modules} off: "
        + (
            "it reaches the loss only through here, and does not learn."
            if parts
            else "its result, whole numbers, is joined with what does learn."
        ),
        location=facts.location(place),
        subject=modules,
        evidence=tuple(
            f"{part.leaf}: the gradient of {part.zero:,} of {part.rows:,} rows is nothing but zeros"
            for part in list(parts.values())[:MOST_TERMS]
        )
        or (f"its inputs depend on {listed(leaves)}; its result depends on nothing",),
        why=why,
        remedy=remedy,
    )


def way_cut_off(facts: Facts) -> Iterable[FindingDraft]:
    """GS317: a value is cut off on its way into a layer, and what it was made from learns by other
    ways."""
    places: dict[int | None, list[Cut]] = {}
    for cut in facts.seen.cuts:
        # What is drawn is cut off by nature, and a gradient by itself is seldom differentiated.
        if cut.ways and not cut.within and cut.function != "grad":
            places.setdefault(place_of(cut), []).append(cut)
    for place, cuts in places.items():
        leaves = list(dict.fromkeys(name for cut in cuts for name in cut.ways))
        why, remedy = why_and_remedy(cuts[0])
        is_astray = all(cut.astray for cut in cuts)
        yield facts.finding(
            "warning" if is_astray else "information",
            f"{at_place(facts, cuts[0])}{name_of(cuts[0])} cuts one way of the gradient off: "
            f"{count(len(leaves), 'parameter')} behind it learn{'s' * (len(leaves) == 1)} nothing "
            "through it.",
            location=facts.location(place),
            subject=listed(_modules(facts, leaves), 3),
            evidence=f"its inputs depend on {listed(leaves)}, which the next step changes; its "
            + (
                "result goes into layers that this step does not change either"
                if is_astray
                else "result goes into what learns, and depends on nothing"
            ),
            why=why,
            remedy=remedy if is_astray else f"If it is meant, nothing is wrong. {remedy}",
        )
