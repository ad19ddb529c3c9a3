"""Rules about learning that is lost for other reasons than a missing gradient: frozen parameters,
tensors that only look like one, a forgotten optimizer, and edits that torch does not notice."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.left_out import Evidence, evidence, line_of
from gradscope.rules.questions.parameters import grouped, one_cause, same_line
from gradscope.words import count, listed


def frozen_parameter(facts: Facts) -> Iterable[FindingDraft]:
    """GS305: an optimizer holds a parameter that does not require grad."""
    # One that is frozen now and then, as that of a network in the other one's turn, does learn.
    frozen = [
        item
        for item in facts.seen.learners
        if item.in_optimizer and not item.requires_grad and not item.reached
    ]
    zeros = [one for one in frozen if one.zero and one.used is not None]
    # Whoever freezes a network may put adapters into all parts of it: one cause.
    others = [one for one in frozen if one not in zeros]
    for learners, is_zero in ((zeros, True), (others, False)):
        paths = [path for path, _ in grouped(facts, learners)]
        if learners:
            yield _frozen(facts, listed(paths, 3), learners, is_zero)


def _frozen(
    facts: Facts, path: str, learners: list[TrackedParameter], is_zero: bool
) -> FindingDraft:
    names = _names(learners)
    return facts.finding(
        "warning" if is_zero else "information",
        f"An optimizer holds what is frozen (requires_grad=False): {path}.",
        location=facts.location(learners[0].made),
        subject=path,
        evidence=(names, "forward multiplies by their zeros") if is_zero else names,
        why="Frozen before any step, a factor of zeros stays as it was made, and what it is "
        "multiplied with, the other factor of an adapter, has no effect."
        if is_zero
        else "It gets no gradient, so the optimizer skips it and it keeps its values.",
        remedy="Freeze the network first, and put the adapters into it after that."
        if is_zero
        else "Nothing, if it is meant to stay as it is; else set requires_grad back to True.",
    )


def non_leaf_parameter(facts: Facts) -> Iterable[FindingDraft]:
    """GS306: a tensor that is meant to be learned, but is the result of an operation."""
    for learner in facts.seen.learners:
        if not learner.history:
            continue
        if learner.wanted or learner.asked is not None:
            continue
        yield facts.warning(
            f"{learner.name} is not a leaf: it is the result of {learner.history}, so its "
            ".grad stays None.",
            location=facts.location(learner.made),
            subject=learner.name,
            evidence=f"made by {learner.history} from a tensor that requires grad",
            why="Gradients are kept in leaves only, and in results that were told to keep theirs.",
            remedy="To learn it, do the operation first and then ask for gradients: "
            "`w = (torch.randn(n) * 0.1).requires_grad_()`, `x = x.to(device).requires_grad_()`. "
            f"To look at its gradient, call `{learner.name}.retain_grad()` before backward.",
        )
    # Those made at one line, as `x, t = xt[:, 0:1], xt[:, 1:2]`, have one cause.
    lines: dict[tuple[str, int] | None, list[TrackedParameter]] = {}
    given = {one.result: one for one in facts.seen.learners if one.result is not None}
    for learner in given.values():
        yield _not_used(facts, learner)
    for learner in facts.seen.learners:
        if learner.result is not None:
            continue
        if learner.history and (learner.wanted or learner.asked is not None):
            at = facts.location(learner.made)
            lines.setdefault((at.file, at.line) if at else None, []).append(learner)
    for learners in lines.values():
        yield _not_in_graph(facts, learners)


def _not_used(facts: Facts, learner: TrackedParameter) -> FindingDraft:
    call = facts.location(learner.asked)
    return facts.warning(
        f"{facts.expression(learner.result) or 'A result'} was not computed from what its function "
        "is given, and the gradient by that is asked for.",
        location=facts.location(learner.result),
        evidence=f"asked for by {facts.expression(learner.asked)} at {call}: zeros"
        if call
        else "the gradient is zeros",
        why="`jacobian` and its like hand new tensors to the function: only what is computed from "
        "these is differentiated. A module that is called inside uses its own parameters.",
        remedy="Compute the result from the arguments; of a module: "
        "`torch.func.functional_call(model, dict(zip(names, weights)), (x,))`.",
    )


def _not_in_graph(facts: Facts, learners: list[TrackedParameter]) -> FindingDraft:
    # What made the call fail comes first.
    learner = min(learners, key=lambda one: not one.wanted)
    places = dict.fromkeys(facts.expression(one.made) or one.name for one in learners)
    asked = dict.fromkeys(facts.location(one.asked) for one in learners if not one.wanted)
    calls = listed(str(at) for at in asked if at is not None)
    return facts.finding(
        "error" if learner.wanted else "warning",
        f"The gradient of {listed(filter(None, places)) or 'a tensor'} is asked for, but the "
        "result was not computed from it.",
        location=facts.location(learner.made),
        subject=listed(dict.fromkeys(one.name for one in learners if one.name)),
        evidence=(
            f"{learner.history} made it, and nothing in the graph took it",
            *([f"torch.autograd.grad gave no gradient of it at {calls}"] if calls else []),
        ),
        why="An index or a view gives a new tensor each time; only the tensors that went into the "
        "result are in its graph.",
        remedy="Ask for the gradient of the tensor that was used, and take the part of that; or "
        "make the part first and compute the result from it.",
        fails=learner.wanted,
    )


FEWEST_VAIN = 2
"""Steps without a gradient after the model was replaced, before that is called a mistake."""

FEWEST_UNCHANGED = 3
"""Backward calls between which nothing changes what forward uses, before that is a mistake."""

_STALE = "the optimizer holds parameters that are no longer used"


def not_in_optimizer(facts: Facts) -> Iterable[FindingDraft]:
    """GS307: a parameter that gets a gradient, and no optimizer holds it."""
    yield from _replaced(facts)
    yield from _copied(facts)
    learners = facts.seen.learners
    if not any(item.in_optimizer and item.in_module for item in learners):
        return  # where only an input is learned, the network is meant to stay as it is
    # A Parameter that forward makes anew of what it computed does change, with that.
    remade = [cut.origin for cut in facts.seen.cuts if cut.function == "Parameter"]
    remade.extend(entry.origin for entry in facts.seen.remade)
    left = [
        item
        for item in learners
        if _is_left_out(item) and not any(same_line(facts, item.made, one) for one in remade)
    ]
    stale = any(item.in_optimizer and not item.in_module and not item.reached for item in learners)
    among = one_cause(facts, left, lambda item: item.requires_grad, lambda item: item.made)
    told: dict[object, tuple[list[str], list[TrackedParameter], Evidence | None]] = {}
    for number, (paths, group) in enumerate(among):
        meant = evidence(facts, group)
        # What is forgotten in one place, for one reason, is one finding.
        known = told.setdefault(meant or number, ([], [], meant))
        known[0].extend(paths)
        known[1].extend(group)
    for paths, group, meant in told.values():
        yield _left_out(facts, paths, group, meant, stale)


def _replaced(facts: Facts) -> Iterable[FindingDraft]:
    """Models that were replaced in the middle of a training."""
    for entry in facts.seen.replaced_models:
        if entry.times < FEWEST_VAIN:
            continue
        where = facts.at(entry.stepped)
        words = facts.expression(entry.origin) or "A new model"
        yield facts.warning(
            f"{words} gets gradients, but no optimizer holds it, so it never changes.",
            location=facts.location(entry.origin),
            subject=facts.variable(entry.origin),
            evidence=f"{count(entry.times, 'step')}{where} without effect: the optimizer still "
            "holds the parameters that were replaced, and these get no gradient any more",
            why="An optimizer keeps the parameters it was made with; a copy or a new model has its "
            "own.",
            remedy="Load the state instead, `model.load_state_dict(best.state_dict())`, which "
            "keeps the parameters; or make a new optimizer as well.",
        )


def _copied(facts: Facts) -> Iterable[FindingDraft]:
    """Copies in an optimizer of what forward uses, which nothing ever changes."""
    steps = [step for step in facts.seen.steps if step.accumulates]
    # Copies may well be what is stepped where the numbers are then written back.
    if len(steps) < FEWEST_UNCHANGED or any(step.stepped for step in steps):
        return
    held = [one for one in facts.seen.learners if one.in_optimizer and not one.waiting]
    if not held or any(one.used is not None or one.in_module for one in held):
        return
    used = [one for one in facts.seen.learners if one.reached and one.in_optimizer is False]
    made = {_function_of(facts, one.made) for one in held}
    # Who copies the other way round computes with the copies.
    cut = next(
        (
            cut
            for cut in facts.seen.cuts
            if cut.itself
            and made == {_function_of(facts, cut.origin)}
            and used
            and {one.name for one in used}.issubset(cut.leaves)
        ),
        None,
    )
    if cut is not None and sorted(map(_shape, used)) == sorted(map(_shape, held)):
        names = listed([one.name for one in used], 3)
        yield facts.warning(
            "The optimizer holds copies of what forward computes with, so that never changes.",
            location=facts.location(held[0].made) or facts.location(cut.origin),
            evidence=(
                f"{names}: nothing has changed {'it' if len(used) == 1 else 'them'} in "
                f"{count(len(steps), 'backward call')}",
                f"the optimizer's {count(len(held), 'tensor')} were cut off from them by "
                f"{facts.expression(cut.origin) or cut.function}, and no call took them",
            ),
            why="`detach().clone()` gives a tensor with memory of its own: a step changes that, "
            "and what it was copied from stays as it is.",
            remedy="Give the optimizer the tensors themselves; or write the numbers back after "
            "each step, under torch.no_grad(): `weight.copy_(copy)`.",
        )


def _function_of(facts: Facts, origin: int | None) -> tuple[str, str] | None:
    """The file and the function that a place stands in."""
    place = None if origin is None else facts.graph.origins[origin]
    return None if place is None else (place.file, place.function)


def _shape(learner: TrackedParameter) -> tuple[int, ...]:
    return tuple(learner.tensor.shape)


def _left_out(
    facts: Facts,
    paths: list[str],
    group: list[TrackedParameter],
    meant: Evidence | None,
    stale: bool,
) -> FindingDraft:
    """The finding about parameters that are left out together; ``stale``: an optimizer holds some
    that are no longer used."""
    path, loose = listed(paths, 3), group[0].loose and meant is None
    words = (_STALE,) if stale and not meant else (meant.words,) if meant else ()
    return facts.finding(
        "warning" if loose or stale or meant else "information",
        f"{path} gets gradients, but no optimizer holds it, so it never changes."
        if len(paths) == 1
        else f"{path} get gradients, but no optimizer holds them, so they never change.",
        location=(facts.location(meant.place) if meant else None) or facts.location(group[0].made),
        subject=path,
        evidence=(_names(group), *words, *(line_of(facts, group) if meant else ())),
        why="What is kept in a plain list, dict or tensor is unknown to parameters()."
        if loose
        else "The optimizer was made without it, or before it was put in its place.",
        remedy=_REGISTER if loose else meant.remedy if meant else _COMPLETE,
    )


_REGISTER = (
    "Keep such layers in nn.ModuleList or nn.ModuleDict, and such tensors in an nn.Parameter that "
    "__init__ makes."
)
_COMPLETE = (
    "Make the optimizer after the model is complete, from the parameters of all its parts; or call "
    "requires_grad_(False) on what is meant to stay as it is."
)


def _is_left_out(learner: TrackedParameter) -> bool:
    held = learner.in_module or learner.loose
    return held and learner.requires_grad and learner.in_optimizer is False and learner.reached


_BEHIND_TORCH = (
    "Through .data or detach() the version counter stays as it was, so backward runs, and computes "
    "with the new numbers: the gradient is silently wrong.",
    "Change it after backward, change a clone, or use an out-of-place operation.",
)
_BATCH_NORM = (
    "In train mode a batch norm updates its running statistics, which torch does not count as a "
    "change; the call in eval mode before it needs them as they were, so its gradient is wrong.",
    "Call backward before the next forward pass in train mode, or run both passes in one mode.",
)


def silent_inplace(facts: Facts) -> Iterable[FindingDraft]:
    """GS308: a tensor changed behind torch's back after it was saved for backward."""
    places: dict[int | None, list[int]] = {}
    for index, change in enumerate(facts.seen.changes):
        if change.silent:
            places.setdefault(change.origin, []).append(index)
    for indices in places.values():
        first = facts.seen.changes[indices[0]]
        changed = facts.expression(first.origin) or first.function
        nodes = [facts.words(facts.seen.changes[i].node) for i in indices]
        why, remedy = _BATCH_NORM if first.function == "batch_norm" else _BEHIND_TORCH
        yield facts.warning(
            f"{changed} changes a tensor that backward still needs, without torch noticing.",
            first.node,
            location=facts.location(first.origin),
            evidence=(
                f"{facts.op(first.node)} had saved it as {first.slot}",
                f"needed by {listed(nodes)}",
            ),
            why=why,
            remedy=remedy,
        )


def _names(learners: list[TrackedParameter]) -> str:
    names = [learner.name for learner in learners]
    return f"{count(len(names), 'parameter')}: {listed(names)}"
