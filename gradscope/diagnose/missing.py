"""Rules about parameters that no gradient reaches: unused, or cut off."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.diagnose._parameters import (
    failed_without_history,
    find_missing,
    grouped,
    has_sibling,
    is_spare_part,
)
from gradscope.diagnose._second_order import wasted_graphs
from gradscope.model.observations import Cut, CutReason, Severity, TrackedParameter
from gradscope.words import count, first_line, listed

_NUMBERS = "It turns the tensor into a plain number, and numbers have no history."
CUTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("item", "float", "__float__", "int", "__int__", "tolist"),
        (_NUMBERS, "Go on with the tensor itself; use `.item()` only for what is printed."),
    ),
    **dict.fromkeys(
        ("numpy", "__array__"),
        (
            "NumPy knows nothing of gradients.",
            "Write that part with torch operations, or as a torch.autograd.Function.",
        ),
    ),
    **dict.fromkeys(
        ("tensor", "as_tensor", "new_tensor"),
        (
            "It copies the numbers into a new tensor, which has no history.",
            "Use `torch.stack` or `torch.cat` on the tensors; torch.tensor is for plain data.",
        ),
    ),
    "deepcopy": (
        "A copy is a new leaf: the gradient stays in the copy, and the original gets none.",
        "Make the inner steps out of place and call the model with the new tensors "
        "(torch.func.functional_call); or hand the copy's gradients back, `p.grad = q.grad`.",
    ),
    "Parameter": (
        "A Parameter is a new leaf: it has the numbers of what it is made of, not the history.",
        "Make Parameters in __init__ only; use what is computed in forward as it is "
        "(torch.func.functional_call puts it in the place of a parameter).",
    ),
    "grad": (
        "Without create_graph=True the gradients that torch.autograd.grad returns have no history.",
        "Pass `create_graph=True` where a loss is computed from the gradients.",
    ),
    **dict.fromkeys(
        ("detach", "detach_", "data", "__get__"),
        (
            "Its result shares the numbers but not the history.",
            "Leave it out where a gradient is wanted; keep it for targets, logging and state that "
            "is carried over.",
        ),
    ),
    **dict.fromkeys(
        ("argmax", "argmin", "argsort", "multinomial", "bincount", "topk", "sort", "max"),
        (
            "An index has no derivative.",
            "Compute the loss from the scores (cross_entropy takes logits), or use "
            "`gumbel_softmax` for a choice that can be learned.",
        ),
    ),
}
COMPARISON = (
    "The result of a comparison is a step: it has no derivative.",
    "Use a smooth gate (sigmoid), or let the gradient pass it: `hard + soft - soft.detach()`.",
)


_OFTEN_MEANT = ("detach", "detach_", "data", "grad")
"""What also takes a term out of the gradient on purpose."""


def history_cut(facts: Facts) -> Iterable[FindingDraft]:
    """GS303: a call that cut the history on the way from a parameter to the loss."""
    for index, learners in _cut_off(facts, ("function",)):
        cut = facts.seen.cuts[index]
        why, remedy = CUTS.get(cut.then or cut.function, COMPARISON)
        yield _finding(facts, index, learners, f"{_name(cut)} cuts the gradient off", why, remedy)
    yield from _lost_terms(facts)
    yield from wasted_graphs(facts, facts.once(find_missing).by_cut)


def _lost_terms(facts: Facts) -> Iterable[FindingDraft]:
    """Terms of a loss that are plain numbers, though they were computed from parameters."""
    explained = facts.once(find_missing).by_cut
    told = {facts.seen.cuts[index].origin for index in explained}
    for index, cut in enumerate(facts.seen.cuts):
        if not cut.summand or not cut.leaves or cut.origin in told:
            continue
        told.add(cut.origin)
        meant = cut.reason != "function" or cut.function in _OFTEN_MEANT
        why, remedy = CUTS.get(cut.then or cut.function, COMPARISON)
        start = _finding(facts, index, [], "", why, remedy)
        yield msgspec.structs.replace(
            start,
            severity="information" if meant else "warning",
            message=f"{_at(facts, cut.origin)}{_name(cut)} cuts a term of the loss off: it adds to "
            "the loss and nothing to the gradient.",
            evidence=(f"its inputs depend on {listed(cut.leaves)}; what is added does not",),
            fails=False,
        )


def _name(cut: Cut) -> str:
    return f"{cut.function} (for {cut.then})" if cut.then else cut.function


def no_grad_region(facts: Facts) -> Iterable[FindingDraft]:
    """GS304: a part of the forward pass that runs where gradients are switched off."""
    for index, learners in _cut_off(facts, ("no_grad", "inference_mode")):
        cut = facts.seen.cuts[index]
        found = _finding(
            facts,
            index,
            learners,
            f"gradients are switched off ({cut.reason})",
            "Under torch.no_grad, torch.inference_mode or set_grad_enabled(False) no history is "
            "recorded; set_grad_enabled(False) stays in force until it is switched on again.",
            "Run this part outside, and use these modes as `with` blocks around evaluation only. "
            "If it is meant to stay frozen, leave its parameters out of the optimizer.",
        )
        yield msgspec.structs.replace(found, evidence=(*found.evidence, *_first_call(facts, cut)))
    yield from _inference_tensor(facts)


def reentrant_checkpoint(facts: Facts) -> Iterable[FindingDraft]:
    """GS309: a reentrant checkpoint none of whose inputs needs a gradient."""
    for index, learners in _cut_off(facts, ("checkpoint",)):
        yield _finding(
            facts,
            index,
            learners,
            "a reentrant checkpoint cuts the gradient off",
            "With use_reentrant=True no gradient flows unless some input requires grad; the "
            "parameters inside do not count.",
            "Pass use_reentrant=False.",
        )


def _first_call(facts: Facts, cut: Cut) -> Iterable[str]:
    """What ran where gradients were switched off, if another line switched them off."""
    place = facts.location(cut.origin)
    if place is not None and _guilty(facts, cut) != cut.origin:
        called = facts.expression(cut.origin)
        yield f"the first call there that needed history: {called} at {place.file}:{place.line}"


def _guilty(facts: Facts, cut: Cut) -> int | None:
    """Where to look: at the line that switched gradients off, not at the code that ran there."""
    switch = cut.switched
    if switch is not None and "grad" in facts.graph.origins[switch].expression:
        return switch
    return cut.origin


def _inference_tensor(facts: Facts) -> Iterable[FindingDraft]:
    failure = facts.seen.failure
    if failure is None or "nference tensor" not in failure.message:
        return
    index = next((i for i, c in enumerate(facts.seen.cuts) if c.reason == "inference_mode"), None)
    if index is not None and index in facts.once(find_missing).by_cut:
        return
    origin = facts.seen.cuts[index].origin if index is not None else failure.origin
    yield facts.finding(
        "error",
        "A tensor that was made under inference_mode goes into a graph.",
        location=facts.location(origin),
        evidence=(first_line(failure.message),),
        why="Such tensors can never take part in a gradient.",
        remedy="Make it under torch.no_grad instead, or clone it before it is used.",
    )


def _cut_off(
    facts: Facts, reasons: tuple[CutReason, ...]
) -> Iterable[tuple[int, list[TrackedParameter]]]:
    """Cuts for these reasons with the learners behind them; one place is one cause."""
    places: dict[int | None, tuple[int, list[TrackedParameter]]] = {}
    for index, learners in sorted(facts.once(find_missing).by_cut.items()):
        cut = facts.seen.cuts[index]
        if cut.reason in reasons:
            places.setdefault(_guilty(facts, cut), (index, []))[1].extend(learners)
    return places.values()


def _finding(
    facts: Facts, index: int, learners: list[TrackedParameter], what: str, why: str, remedy: str
) -> FindingDraft:
    cut = facts.seen.cuts[index]
    guilty = _guilty(facts, cut)
    names = [learner.name for learner in learners] or list(cut.leaves)
    many = count(len(names), "parameter")
    failed = failed_without_history(facts)
    return facts.finding(
        "error" if failed else "warning",
        f"{_at(facts, guilty)}{what}: {many} get{'s' * (len(names) == 1)} no gradient.",
        location=facts.location(guilty),
        subject=_subject(facts, learners, names),
        evidence=(
            f"its inputs depend on {listed(names)}; its result depends on nothing",
            *(["no watched backward call reached them"] if not failed else []),
        ),
        why=why,
        remedy=remedy,
        fails=True,
    )


def _at(facts: Facts, origin: int | None) -> str:
    place = facts.expression(origin)
    return f"At {place} " if place else "Here "


def _subject(facts: Facts, learners: list[TrackedParameter], names: list[str]) -> str:
    paths = [path for path, _ in grouped(facts, learners)]
    return listed(paths or names, 3)


def unused_parameter(facts: Facts) -> Iterable[FindingDraft]:
    """GS301: a parameter that no operation of the forward pass takes."""
    for path, learners in grouped(facts, facts.once(find_missing).unused):
        yield _idle(
            facts,
            (path, learners),
            learners[0].made,
            (
                "was never used in the watched steps, so no gradient reaches it.",
                "It is defined, and no operation takes it: often the call was forgotten, or "
                "another layer is called in its place.",
                "Call it in forward, or delete it. If it is used now and then (a branch, an "
                "expert), nothing is wrong.",
            ),
            may_be_meant=has_sibling(facts, path),
        )


def result_unused(facts: Facts) -> Iterable[FindingDraft]:
    """GS302: a parameter that is used, but nothing made from it reaches the loss."""
    if failed_without_history(facts):
        return
    places: dict[int | None, list[TrackedParameter]] = {}
    for learner in facts.once(find_missing).idle:
        places.setdefault(learner.used, []).append(learner)
    for used, found in places.items():
        learners = [learner for learner in found if learner.in_optimizer] or found
        paths = [path for path, _ in grouped(facts, learners)]
        yield _idle(
            facts,
            (listed(paths, 3), learners),
            used,
            (
                f"is used in {facts.expression(used) or 'forward'}, but the result never reaches "
                "the loss.",
                "The result is computed and then dropped: overwritten, returned and not read, or "
                "left out of the loss.",
                "Let the loss depend on it, or do not compute it.",
            ),
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
    names = [learner.name for learner in learners]
    held = " It is in the optimizer." if learners[0].in_optimizer else ""
    return facts.finding(
        _severity(facts, learners[0], may_be_meant),
        f"{path} {what}{held}",
        location=facts.location(origin),
        subject=path,
        evidence=(
            f"{count(len(names), 'parameter')} without a gradient: {listed(names)}",
            f"{count(facts.seen.calls, 'backward call')} watched",
        ),
        why=why,
        remedy=remedy,
    )
