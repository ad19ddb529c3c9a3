"""Rules about parameters that no gradient reaches: unused, or cut off."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._facts import Facts, listed, plural
from gradscope.diagnose._learners import (
    failed_without_history,
    find_missing,
    grouped,
    has_sibling,
)
from gradscope.observations import CutReason, Finding, Learner, Severity

_NUMBERS = "It turns the tensor into a plain number, and numbers have no history."
_CUTS: dict[str, tuple[str, str]] = {
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
_COMPARISON = (
    "The result of a comparison is a step: it has no derivative.",
    "Use a smooth gate (sigmoid), or let the gradient pass it: `hard + soft - soft.detach()`.",
)


def history_cut(facts: Facts) -> Iterable[Finding]:
    """GS303: a call that cut the history on the way from a parameter to the loss."""
    for index, learners in _cut_off(facts, ("function",)):
        cut = facts.seen.cuts[index]
        why, remedy = _CUTS.get(cut.function, _COMPARISON)
        yield _finding(facts, index, learners, f"{cut.function} cuts the gradient off", why, remedy)


def no_grad_region(facts: Facts) -> Iterable[Finding]:
    """GS304: a part of the forward pass that runs where gradients are switched off."""
    for index, learners in _cut_off(facts, ("no_grad", "inference_mode")):
        reason = facts.seen.cuts[index].reason
        yield _finding(
            facts,
            index,
            learners,
            f"gradients are switched off here ({reason})",
            "Under torch.no_grad, torch.inference_mode or set_grad_enabled(False) no history is "
            "recorded; set_grad_enabled(False) stays in force until it is switched on again.",
            "Run this part outside, and use these modes as `with` blocks around evaluation only. "
            "If it is meant to stay frozen, leave its parameters out of the optimizer.",
        )
    yield from _inference_tensor(facts)


def reentrant_checkpoint(facts: Facts) -> Iterable[Finding]:
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


def _inference_tensor(facts: Facts) -> Iterable[Finding]:
    failure = facts.seen.failure
    if failure is None or "nference tensor" not in failure.message:
        return
    index = next((i for i, c in enumerate(facts.seen.cuts) if c.reason == "inference_mode"), None)
    if index is not None and index in facts.once(find_missing).by_cut:
        return
    origin = facts.seen.cuts[index].origin if index is not None else failure.origin
    yield Finding(
        rule="",
        name="",
        severity="error",
        message="A tensor that was made under inference_mode goes into a graph.",
        location=facts.location(origin),
        evidence=(failure.message.split("\n")[0],),
        why="Such tensors can never take part in a gradient.",
        remedy="Make it under torch.no_grad instead, or clone it before it is used.",
    )


def _cut_off(facts: Facts, reasons: tuple[CutReason, ...]) -> Iterable[tuple[int, list[Learner]]]:
    """Cuts for these reasons with the learners behind them; one place is one cause."""
    places: dict[int | None, tuple[int, list[Learner]]] = {}
    for index, learners in sorted(facts.once(find_missing).by_cut.items()):
        cut = facts.seen.cuts[index]
        if cut.reason in reasons:
            places.setdefault(cut.origin, (index, []))[1].extend(learners)
    return places.values()


def _finding(
    facts: Facts, index: int, learners: list[Learner], what: str, why: str, remedy: str
) -> Finding:
    cut = facts.seen.cuts[index]
    place = facts.expression(cut.origin)
    names = [learner.name for learner in learners] or list(cut.leaves)
    many = plural(len(names), "parameter")
    where = f"At {place} " if place else "Here "
    failed = failed_without_history(facts)
    return Finding(
        rule="",
        name="",
        severity="error" if failed else "warning",
        message=f"{where}{what}: {many} get{'s' * (len(names) == 1)} no gradient.",
        location=facts.location(cut.origin),
        subject=_subject(facts, learners, names),
        evidence=(
            f"its inputs depend on {listed(names)}; its result depends on nothing",
            *(["no watched backward call reached them"] if not failed else []),
        ),
        why=why,
        remedy=remedy,
    )


def _subject(facts: Facts, learners: list[Learner], names: list[str]) -> str:
    paths = [path for path, _ in grouped(facts, learners)]
    return listed(paths or names, 3)


def unused_parameter(facts: Facts) -> Iterable[Finding]:
    """GS301: a parameter that no operation of the forward pass takes."""
    for path, learners in grouped(facts, facts.once(find_missing).unused):
        may_be_meant = has_sibling(facts, path) or not learners[0].in_optimizer
        yield _idle(
            facts,
            (path, learners),
            learners[0].made,
            "information" if may_be_meant else "warning",
            (
                "was never used in the watched steps, so no gradient reaches it.",
                "It is defined, and no operation takes it: often the call was forgotten, or "
                "another layer is called in its place.",
                "Call it in forward, or delete it. If it is used now and then (a branch, an "
                "expert), nothing is wrong.",
            ),
        )


def result_unused(facts: Facts) -> Iterable[Finding]:
    """GS302: a parameter that is used, but nothing made from it reaches the loss."""
    if failed_without_history(facts):
        return
    places: dict[int | None, list[Learner]] = {}
    for learner in facts.once(find_missing).idle:
        places.setdefault(learner.used, []).append(learner)
    for used, found in places.items():
        learners = [learner for learner in found if learner.in_optimizer] or found
        paths = [path for path, _ in grouped(facts, learners)]
        yield _idle(
            facts,
            (listed(paths, 3), learners),
            used,
            "warning" if learners[0].in_optimizer else "information",
            (
                f"is used in {facts.expression(used) or 'forward'}, but the result never reaches "
                "the loss.",
                "The result is computed and then dropped: overwritten, returned and not read, or "
                "left out of the loss.",
                "Let the loss depend on it, or do not compute it.",
            ),
        )


def _idle(
    facts: Facts,
    group: tuple[str, list[Learner]],
    origin: int | None,
    severity: Severity,
    words: tuple[str, str, str],
) -> Finding:
    (path, learners), (what, why, remedy) = group, words
    names = [learner.name for learner in learners]
    held = " It is in the optimizer." if learners[0].in_optimizer else ""
    return Finding(
        rule="",
        name="",
        severity=severity,
        message=f"{path} {what}{held}",
        location=facts.location(origin),
        subject=path,
        evidence=(
            f"{plural(len(names), 'parameter')} without a gradient: {listed(names)}",
            f"{plural(facts.seen.calls, 'backward call')} watched",
        ),
        why=why,
        remedy=remedy,
    )
