"""Cuts that parameters lie behind of which no gradient reaches any, and the finding about one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from gradscope.model.observations import Cut, CutReason, TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import at_place, name_of, place_of, why_and_remedy
from gradscope.rules.questions.missing import failed_without_history, find_missing
from gradscope.rules.questions.parameters import grouped
from gradscope.rules.rule import Rule
from gradscope.words import count, listed


class CutOffRule(Rule):
    """A rule about the cuts for some ``reasons``."""

    reasons: ClassVar[tuple[CutReason, ...]]
    before = {
        "GS306": "failure",
        "GS310": "place",
        "GS409": "failure",
        "GS317": "place",
        "GS410": "failure",
        "GS413": "failure",
    }

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return (of_cut(facts, cuts[0], learners) for cuts, learners in self.cut_off(facts))

    def cut_off(self, facts: Facts) -> Iterable[tuple[list[Cut], list[TrackedParameter]]]:
        """The cuts with the learners behind them; one place is one cause."""
        places: dict[int | None, tuple[list[Cut], list[TrackedParameter]]] = {}
        for index, learners in sorted(facts.once(find_missing).by_cut.items()):
            cut = facts.seen.cuts[index]
            if cut.reason in self.reasons:
                cuts, behind = places.setdefault(place_of(cut), ([], []))
                cuts.append(cut)
                behind.extend(learners)
        return places.values()


def of_cut(facts: Facts, cut: Cut, learners: list[TrackedParameter]) -> FindingDraft:
    """The finding about a cut that these parameters, or its own leaves, are behind."""
    names = [learner.name for learner in learners] or list(cut.leaves)
    names = [name or "a tensor without a name" for name in names]
    failed = failed_without_history(facts)
    why, remedy = why_and_remedy(cut)
    return facts.finding(
        "error" if failed else "warning" if _starves(facts, cut, learners) else "information",
        f"{at_place(facts, cut)}{_loss_at(cut, len(names))}",
        location=facts.location(place_of(cut)),
        subject=listed([path for path, _ in grouped(facts, learners)] or names, 3),
        evidence=(
            f"used inside of it, and no argument: {listed(names)}"
            if cut.inside or cut.ungiven
            else f"its inputs depend on {listed(names)}; its result depends on nothing",
            *(["no watched backward call reached them"] if not failed else []),
            *_terms(facts, cut),
        ),
        why=why,
        remedy=remedy,
        fails=True,
    )


def _starves(facts: Facts, cut: Cut, learners: list[TrackedParameter]) -> bool:
    """Whether somebody misses the gradient: what was cut off is used all the same, or an optimizer
    is to change what lies behind it.  Else the values may only be compared, printed or saved."""
    # Whoever optimizes a part of the parameters expects no gradient for the rest.
    used = [one for one in facts.seen.cuts if place_of(one) == place_of(cut)]
    expected = any(one.in_optimizer or one.wanted or one.waiting for one in learners)
    return expected or cut.inside or any(one.feeds_graph for one in used)


def _terms(facts: Facts, cut: Cut) -> Iterable[str]:
    """Where what was cut off comes into a loss of several terms."""
    told = [f"{facts.expression(one)}{facts.at(one)}" for one in cut.terms if facts.at(one)]
    if told:
        yield f"its result is in these terms of the loss: {listed(told)}"


def _loss_at(cut: Cut, number: int) -> str:
    """What happens there to so many parameters."""
    many = count(number, "parameter")
    get = f"get{'s' * (number == 1)} no gradient"
    if cut.inside and cut.reason == "checkpoint":
        return f"{many} used in a reentrant checkpoint {get} when backward runs it again."
    if (cut.inside or cut.ungiven) and cut.reason == "function":
        return f"{many} used inside of {name_of(cut)}, and no argument of it, {get}."
    if cut.reason in ("no_grad", "inference_mode") and not cut.within:
        return f"gradients are switched off ({cut.reason}): {many} {get}."
    return f"{name_of(cut)} cuts the gradient off: {many} {get}."
