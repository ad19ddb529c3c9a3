"""Rules about parameters that no gradient reaches: unused, or cut off; and about gradients whose
own graph is asked for, and then thrown away."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.model.observations import Cut, CutReason, Severity, TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import (
    at_place,
    constant_losses,
    name_of,
    place_of,
    why_and_remedy,
)
from gradscope.rules.questions.left_out import order_of, replaced
from gradscope.rules.questions.parameters import (
    failed_without_history,
    find_missing,
    grouped,
    has_sibling,
    is_spare_part,
    one_cause,
    same_line,
)
from gradscope.words import count, first_line, listed

_OFTEN_MEANT = ("detach", "detach_", "data", "grad")
"""What also takes a term out of the gradient on purpose."""


def history_cut(facts: Facts) -> Iterable[FindingDraft]:
    """GS303: a call that cut the history on the way from a parameter to the loss."""
    for indices, learners in _cut_off(facts, ("function",)):
        yield _finding(facts, indices[0], learners)
    yield from _constant_terms(facts)
    yield from wasted_graphs(facts, facts.once(find_missing).by_cut)


def _constant_terms(facts: Facts) -> Iterable[FindingDraft]:
    """Terms of a loss that are constants, though they were computed from parameters."""
    explained = facts.once(find_missing).by_cut
    told = {place_of(facts.seen.cuts[index]) for index in explained}
    # Of what a loss of constants was made of, that loss tells.
    constants = facts.once(constant_losses)
    told |= {place_of(facts.seen.cuts[one]) for cut in constants for one in cut.sources}
    starved = {lost.cut for lost in facts.seen.lost_terms if lost.origin is None}
    for index, cut in enumerate(facts.seen.cuts):
        if not cut.summand or not cut.leaves or place_of(cut) in told:
            continue
        told.add(place_of(cut))
        often = cut.reason != "function" or cut.function in _OFTEN_MEANT
        # A single number is detached on purpose, for its value; a loss made of what was detached
        # moves nothing, also where the step after it changes what it was computed from.
        meant = often and (index not in starved or (cut.scalar and cut.function != "grad"))
        yield msgspec.structs.replace(
            _finding(facts, index, []),
            severity="information" if meant else "warning",
            message=f"{at_place(facts, cut)}{name_of(cut)} cuts a term of the loss off: it adds to "
            "the loss and nothing to the gradient.",
            evidence=(f"its inputs depend on {listed(cut.leaves)}; what is added does not",),
            fails=False,
        )


def no_grad_region(facts: Facts) -> Iterable[FindingDraft]:
    """GS304: a part of the forward pass that runs where gradients are switched off."""
    for indices, learners in _cut_off(facts, ("no_grad", "inference_mode")):
        found = _finding(facts, indices[0], learners)
        inside = _calls_inside(facts, indices)
        yield msgspec.structs.replace(found, evidence=(*found.evidence, *inside))
    yield from _inference_tensor(facts)


def reentrant_checkpoint(facts: Facts) -> Iterable[FindingDraft]:
    """GS309: a reentrant checkpoint none of whose inputs needs a gradient, or that does something
    else when backward calls its function again."""
    for indices, learners in _cut_off(facts, ("checkpoint",)):
        yield _finding(facts, indices[0], learners)


def _calls_inside(facts: Facts, indices: list[int]) -> Iterable[str]:
    """What ran where gradients were switched off, if another line switched them off."""
    cuts = [facts.seen.cuts[index] for index in indices]
    calls = dict.fromkeys(cut.origin for cut in cuts if place_of(cut) != cut.origin)
    places = ((facts.expression(origin), facts.location(origin)) for origin in calls)
    told = [f"{words} at {place}" for words, place in places if place]
    if told:
        yield f"ran there, and needed history: {listed(told)}"


def _inference_tensor(facts: Facts) -> Iterable[FindingDraft]:
    failure = facts.seen.failure
    if failure is None or "nference tensor" not in failure.message:
        return
    index = next((i for i, c in enumerate(facts.seen.cuts) if c.reason == "inference_mode"), None)
    if index is not None and index in facts.once(find_missing).by_cut:
        return
    origin = place_of(facts.seen.cuts[index]) if index is not None else failure.origin
    yield facts.finding(
        "error",
        "A tensor that was made under inference_mode goes into a graph.",
        location=facts.location(origin),
        evidence=first_line(failure.message),
        why="Such tensors can never take part in a gradient.",
        remedy="Make it under torch.no_grad instead, or clone it before it is used.",
        fails=True,
    )


def _cut_off(
    facts: Facts, reasons: tuple[CutReason, ...]
) -> Iterable[tuple[list[int], list[TrackedParameter]]]:
    """Cuts for these reasons with the learners behind them; one place is one cause."""
    places: dict[int | None, tuple[list[int], list[TrackedParameter]]] = {}
    for index, learners in sorted(facts.once(find_missing).by_cut.items()):
        cut = facts.seen.cuts[index]
        if cut.reason in reasons:
            indices, behind = places.setdefault(place_of(cut), ([], []))
            indices.append(index)
            behind.extend(learners)
    return places.values()


def _finding(facts: Facts, index: int, learners: list[TrackedParameter]) -> FindingDraft:
    """The finding about a cut that these parameters, or its own leaves, are behind."""
    cut = facts.seen.cuts[index]
    names = [learner.name for learner in learners] or list(cut.leaves)
    names = [name or "a tensor without a name" for name in names]
    failed = failed_without_history(facts)
    why, remedy = why_and_remedy(cut)
    return facts.finding(
        "error" if failed else "warning" if _starves(facts, cut, learners) else "information",
        f"{at_place(facts, cut)}{_loss_at(cut, len(names))}",
        location=facts.location(place_of(cut)),
        subject=_subject(facts, learners, names),
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
    found = ((facts.expression(origin), facts.location(origin)) for origin in cut.terms)
    told = [f"{words} at {place}" for words, place in found if place]
    if told:
        yield f"its result is in these terms of the loss: {listed(told)}"


def _loss_at(cut: Cut, number: int) -> str:
    """What happens there to so many parameters."""
    many = count(number, "parameter")
    if cut.inside and cut.reason == "checkpoint":
        again = f"get{'s' * (number == 1)} no gradient when backward runs it again"
        return f"{many} used in a reentrant checkpoint {again}."
    if (cut.inside or cut.ungiven) and cut.reason == "function":
        get = f"get{'s' * (number == 1)} no gradient"
        return f"{many} used inside of {name_of(cut)}, and no argument of it, {get}."
    if cut.reason in ("no_grad", "inference_mode") and not cut.within:
        what = f"gradients are switched off ({cut.reason})"
    else:
        what = f"{name_of(cut)} cuts the gradient off"
    return f"{what}: {many} get{'s' * (number == 1)} no gradient."


def _subject(facts: Facts, learners: list[TrackedParameter], names: list[str]) -> str:
    paths = [path for path, _ in grouped(facts, learners)]
    return listed(paths or names, 3)


def unused_parameter(facts: Facts) -> Iterable[FindingDraft]:
    """GS301: a parameter that no operation of the forward pass takes."""
    # What another parameter has taken the place of is told with that one.
    told = facts.once(replaced)
    unused = [one for one in facts.once(find_missing).unused if one not in told]
    for paths, learners in one_cause(facts, unused):
        # Of a copy nobody knows more than which optimizer holds it.
        unknown = learners[0].made is None and not learners[0].in_module
        yield _idle(
            facts,
            (listed(paths, 3), learners),
            order_of(facts, learners[0]) if unknown else learners[0].made,
            (
                "was never used in the watched steps, so no gradient reaches it.",
                *(_OF_A_COPY if unknown else _FORGOTTEN),
            ),
            may_be_meant=any(has_sibling(facts, path) for path in paths),
        )


_FORGOTTEN = (
    "It is defined, and no operation takes it: often the call was forgotten, or another layer is "
    "called in its place.",
    "Call it in forward, or delete it. If it is used now and then (a branch, an expert), nothing "
    "is wrong.",
)
_OF_A_COPY = (
    "No operation takes what this optimizer holds: often it is a copy, or the model was made "
    "again after the optimizer.",
    "Make the optimizer from the parameters of the model that is trained, when that is complete.",
)


def result_unused(facts: Facts) -> Iterable[FindingDraft]:
    """GS302: a parameter that is used, but nothing made from it reaches the loss."""
    if failed_without_history(facts):
        return
    for _, found in one_cause(facts, facts.once(find_missing).idle, place=lambda one: one.used):
        learners = [learner for learner in found if learner.in_optimizer] or found
        paths, used = [path for path, _ in grouped(facts, learners)], learners[0].used
        node = facts.once(find_missing).inside.get(learners[0].name)
        inside = "" if node is None else f" {facts.way_inside(node)}"
        is_derived = all(one.derived for one in learners)
        yield _idle(
            facts,
            (listed(paths, 3), learners),
            used,
            (
                f"is used in {facts.expression(used) or 'forward'}, of which a derivative is "
                "taken, and gets no gradient.",
                "What only adds a constant to a function, as a last bias does, is in no derivative "
                "of it.",
                "Leave it out of what is asked for, or pass `allow_unused=True`."
                if learners[0].wanted
                else "Nothing, if only derivatives are learned from; else let the loss depend on "
                "the value, too.",
            )
            if is_derived
            else (
                f"is used in {facts.expression(used) or 'forward'}, but the result never reaches "
                "the loss.",
                "The result is computed and then dropped: overwritten, returned and not read, or "
                "left out of the loss.",
                f"Let the loss depend on it, or do not compute it.{inside}",
            ),
            may_be_meant=is_derived,
        )


def _severity(facts: Facts, learner: TrackedParameter, may_be_meant: bool) -> Severity:
    """A gradient that was asked for and is not there has made the program fail."""
    if learner.wanted:
        return "error"
    may_be_meant |= not learner.in_optimizer or is_spare_part(facts, learner)
    return "information" if may_be_meant else "warning"


def _idle(
    facts: Facts,
    group: tuple[str, list[TrackedParameter]],
    origin: int | None,
    words: tuple[str, str, str],
    may_be_meant: bool = False,
) -> FindingDraft:
    (path, learners), (what, why, remedy) = group, words
    names = list(filter(None, (learner.name for learner in learners)))
    is_held = learners[0].in_optimizer
    held = " It is in the optimizer." if is_held and names else ""
    unnamed = "What the optimizer holds" if is_held else "A parameter without a name"
    missing = f"{count(len(learners), 'parameter')} without a gradient"
    return facts.finding(
        _severity(facts, learners[0], may_be_meant),
        f"{path if names else unnamed} {what}{held}",
        location=facts.location(origin),
        subject=path if names else "",
        evidence=(
            f"{missing}: {listed(names)}" if names else missing,
            f"{count(facts.seen.calls, 'backward call')} watched",
        ),
        why=why,
        remedy=remedy,
        fails=learners[0].wanted,
    )


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
        yield facts.warning(
            f"{place} cuts the gradient of a gradient off: the step is made outside of the graph.",
            location=facts.location(entry.origin),
            evidence=f"create_graph=True asks for that graph{where}, and nothing goes through it",
            why="What is written through .data or under no_grad has no history, so a loss after it "
            "knows nothing of the step: second-order terms are missing.",
            remedy="Make the step out of place, `fast = p - lr * g`, and call the model with the "
            "new tensors (torch.func.functional_call); or leave create_graph out, where "
            "first-order gradients are meant.",
        )
