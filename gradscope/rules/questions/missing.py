"""Which parameters got no gradient although the program expects them to learn, what cut them off,
and the findings about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gradscope.filesystem import is_installed
from gradscope.model.observations import Cut, TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import at_place, name_of, place_of, why_and_remedy
from gradscope.rules.questions.optimizers import grouped
from gradscope.words import count, listed

NO_HISTORY = "does not require grad and does not have a grad_fn"

_SWITCHED_OFF = ("no_grad", "inference_mode")
_METRICS = ("argmax", "gt", "lt", "ge", "le", "eq", "ne", "max")
"""What is mostly there for a metric: what is cut on purpose comes first."""


@dataclass
class Missing:
    """The learners that no watched backward call reached.

    ``by_cut`` are those behind a cut; ``unused`` took no part in forward,
    ``idle`` did, but nothing of it reached a root; ``inside`` are the nodes that hide the way of
    those among them that went into compiled code.
    """

    by_cut: dict[Cut, list[TrackedParameter]] = field(default_factory=dict)
    unused: list[TrackedParameter] = field(default_factory=list)
    idle: list[TrackedParameter] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)


def failed_without_history(facts: Facts) -> bool:
    """Whether backward failed because its root, or that of a call inside of it, has no history."""
    failure = facts.seen.failure
    return failure is not None and NO_HISTORY in failure.message


def _is_unused(facts: Facts) -> bool:
    """Whether a call failed because what it differentiates by has no part in its root."""
    failure = facts.seen.failure
    return failure is not None and "not have been used in the graph" in failure.message


def find_missing(facts: Facts) -> Missing:
    """Find the parameters without a gradient, each with the one reason that explains it best."""
    missing = Missing()
    if not facts.seen.calls and any(one.kind == "step alone" for one in facts.seen.mistaken_calls):
        return missing  # without any backward, none of them could have got one
    for learner in facts.seen.learners:
        if not _is_missing(facts, learner):
            continue
        cut = _cut_of(facts, learner)
        node = _lost_inside(facts, learner)
        if node is not None:
            missing.inside[learner.name] = node
            used = facts.graph.nodes[node].origin
            missing.idle.append(msgspec.structs.replace(learner, used=used))
        elif cut is not None:
            missing.by_cut.setdefault(cut, []).append(learner)
        elif learner.used is None:
            missing.unused.append(learner)
        else:
            missing.idle.append(learner)
    if failed_without_history(facts):
        _blame_latest(facts, missing)
    if facts.seen.failure is not None and not any(step.stepped for step in facts.seen.steps):
        # The program failed in its first step: what it did not use yet it might have used later.
        missing.unused = [learner for learner in missing.unused if learner.wanted]
        missing.idle = [learner for learner in missing.idle if learner.wanted]
    return missing


def _is_missing(facts: Facts, learner: TrackedParameter) -> bool:
    # One of no elements has nothing to learn: it is there to be asked for its device.
    is_empty = 0 in learner.tensor.shape and not learner.lazy
    if not learner.requires_grad or learner.history or is_empty:
        return False
    if learner.wanted or learner.waiting:
        return learner.wanted
    failed = failed_without_history(facts)
    # Where the last call failed, the graph shown is that of a call before it.
    in_graph = learner.leaf is not None and _lost_inside(facts, learner) is None
    reached = learner.reached or (in_graph and not failed)
    if reached and not (failed and learner.leaf is None):
        return False
    if learner.in_optimizer is None and not failed and _is_only_asked(facts, learner):
        return False
    # What no optimizer holds, while others are held, is not expected to learn: a target network.
    return learner.in_optimizer is not False and not (reached and learner.in_optimizer is None)


def _is_only_asked(facts: Facts, learner: TrackedParameter) -> bool:
    """Whether it only ever ran without gradients, and nothing of that came into a graph, in a
    program without optimizers: a black box, whose answers make the gradient that is fed in."""
    cuts = [cut for cut in facts.seen.cuts if learner.name in cut.leaves]
    return bool(cuts) and not learner.recorded and all(map(_is_evaluation, cuts))


def _lost_inside(facts: Facts, learner: TrackedParameter) -> int | None:
    """The compiled code that takes a leaf and has no gradient for it, where that is all that uses
    it: torch.compile joins whatever goes in with whatever comes out."""
    if learner.leaf is None or learner.reached or facts.backward is None:
        return None
    leaf = facts.graph.leaves[learner.leaf].node
    ways = facts.incoming[leaf]
    users = [facts.graph.edges[way].source for way in ways]
    is_lost = all(facts.backward.on_edge(way).state == "none" for way in ways)
    return users[0] if users and is_lost and all(map(facts.is_compiled, users)) else None


def _cut_of(facts: Facts, learner: TrackedParameter) -> Cut | None:
    """The cut that explains best why this leaf is not reached."""
    reached = {other.name for other in facts.seen.learners if other.reached}
    learns = any(other.reached and other.in_optimizer for other in facts.seen.learners)
    candidates = [
        cut
        for cut in facts.seen.cuts
        if (learner.name in cut.leaves or _is_of_same_loop(facts, cut, learner, reached))
        and not (learner.recorded and _is_evaluation(cut))
        and not (cut.inside and _is_spare_part(facts, learner))
        and not _is_only_read(cut, learner, reached)
        # The results of torch.autograd.grad are meant for other things, too, and so are indices.
        and (cut.feeds_graph or not (cut.partial or cut.function == "grad"))
        and not (learner.recorded and learns and is_measured(cut))
    ]
    if not candidates:
        return None
    if failed_without_history(facts):
        return _latest(candidates)
    # Where a term of the loss was lost to the step of this very parameter, its cut is the one.
    lost = {one.cut for one in facts.seen.lost_terms if learner.name in one.leaves}
    return min(
        candidates,
        key=lambda cut: (
            cut not in lost,
            not cut.root,
            not cut.feeds_graph,
            # What is also used with history loses it on that way: the other may be of a target.
            learner.recorded and cut.reason in _SWITCHED_OFF,
            # So is what lies beside a result that has its history.
            cut.function in _METRICS or cut.partial,
        ),
    )


def is_measured(cut: Cut) -> bool:
    """Whether a call only measures, where another loss is learned from: a number that is printed,
    an accuracy."""
    is_metric = cut.scalar or cut.function in _METRICS
    return is_metric and not (cut.feeds_graph or cut.summand)


def _latest(cuts: list[Cut]) -> Cut:
    """The last one, of those that feed the graph if there are any."""
    return max(reversed(cuts), key=lambda cut: cut.feeds_graph)


def _is_evaluation(cut: Cut) -> bool:
    """Whether it ran without gradients, and nothing of it came into a graph: what was also used
    with history has another reason to get no gradient."""
    return cut.reason in _SWITCHED_OFF and not cut.feeds_graph


def _is_only_read(cut: Cut, learner: TrackedParameter, reached: set[str]) -> bool:
    """Whether a call only reads the numbers of parameters, to save, convert, average or log them:
    it does the same to others, which get their gradient, or this one was used with history, too."""
    spares_others = not reached.isdisjoint(cut.leaves)
    if cut.itself and learner.recorded:
        return spares_others or not cut.feeds_graph
    return learner.used is None and spares_others and not cut.feeds_graph


def _is_of_same_loop(facts: Facts, cut: Cut, learner: TrackedParameter, reached: set[str]) -> bool:
    """One line in a loop cuts off many, of which not all need to have been followed."""
    return facts.same_line(cut.origin, learner.used) and not reached.issuperset(cut.leaves)


def _blame_latest(facts: Facts, missing: Missing) -> None:
    """After a failure, what cut its root off is to blame even for leaves reached before; where that
    was not followed, a region without gradients."""
    cuts = facts.seen.cuts
    regions = [cut for cut in cuts if cut.refused and cut.leaves]
    if not missing.by_cut and not regions:
        regions = [cut for cut in cuts if cut.reason in _SWITCHED_OFF]
    if not regions or not missing.by_cut.keys().isdisjoint(regions):
        return
    latest = _latest(regions)
    left = {learner.name: learner for learner in facts.seen.learners}
    for cut in regions:
        # All that ran in one region is one cause.
        if place_of(cut) == place_of(latest):
            behind = (left.pop(name, None) for name in cut.leaves)
            missing.by_cut[cut] = [learner for learner in behind if learner is not None]
    missing.idle = [learner for learner in missing.idle if learner.name in left]


def _is_spare_part(facts: Facts, learner: TrackedParameter) -> bool:
    """Whether a parameter belongs to a library's model of which other parts do learn: a pooler
    whose output this use of the model does not need."""
    file = installed_file(facts, learner)
    return bool(file) and any(
        other.reached and installed_file(facts, other) == file for other in facts.seen.learners
    )


def installed_file(facts: Facts, learner: TrackedParameter) -> str:
    """The file that made a parameter, if it is that of an installed package; else ""."""
    file = "" if learner.made is None else facts.graph.origins[learner.made].file
    return file if is_installed(file) else ""


def without_gradient(
    facts: Facts,
    paths: list[str],
    learners: list[TrackedParameter],
    origin: int | None,
    words: tuple[str, str, str],
    *,
    may_be_meant: bool,
) -> FindingDraft:
    """The finding about parameters that no cut explains, in these words: what, why and remedy."""
    first, names = learners[0], [learner.name for learner in learners if learner.name]
    path, (what, why, remedy) = listed(paths, 3), words
    whose = " of an optimizer" if first.in_optimizer else " without a name"
    their = "They are" if len(paths) > 1 else "It is"
    held = f" {their} in the optimizer." if first.in_optimizer and names else ""
    many = count(len(learners), "parameter")
    missing = f"{many} without a gradient"
    may_be_meant |= not first.in_optimizer or _is_spare_part(facts, first)
    return facts.finding(
        # A gradient that was asked for and is not there has made the program fail.
        "error" if first.wanted else "information" if may_be_meant else "warning",
        f"{path if names else f'{many}{whose}'} {what}{held}",
        location=facts.location(origin),
        subject=path if names else "",
        evidence=(
            f"{missing}: {listed(names)}" if names else missing,
            f"{count(facts.seen.calls, 'backward call')} watched",
        ),
        why=why,
        remedy=remedy,
        fails=first.wanted,
    )


def of_cut(facts: Facts, cut: Cut, learners: list[TrackedParameter]) -> FindingDraft:
    """The finding about a cut that these parameters, or its own leaves, are behind."""
    names = [learner.name for learner in learners] or list(cut.leaves)
    names = [name or "a tensor without a name" for name in names]
    failed = failed_without_history(facts)
    why, remedy = why_and_remedy(cut)
    met = "" if cut.feeds_graph or cut.inside else ", or was seen to meet its result"
    # One cause with all else that ran in it.
    its = "the inputs of what ran in this mode" if cut.reason == "inference_mode" else "its inputs"
    return facts.finding(
        "error" if failed else "warning" if _starves(facts, cut, learners) else "information",
        f"{at_place(facts, cut)}{_loss_at(cut, len(names))}",
        location=facts.location(place_of(cut)),
        subject=listed([path for path, _ in grouped(facts, learners)] or names, 3),
        evidence=(
            f"used inside of it, and no argument: {listed(names)}"
            if cut.inside or cut.ungiven
            else f"{its} depend on {listed(names)}; "
            f"{'that' if cut.partial else 'its'} result depends on nothing",
            *([f"no watched backward call reached them{met}"] if not failed else []),
        ),
        why=why,
        remedy=remedy,
        fails=failed or _is_unused(facts),
    )


def _starves(facts: Facts, cut: Cut, learners: list[TrackedParameter]) -> bool:
    """Whether somebody misses the gradient: what was cut off is used all the same, or an optimizer
    is to change what lies behind it.  Else the values may only be compared, printed or saved."""
    # Whoever optimizes a part of the parameters expects no gradient for the rest.
    used = [one for one in facts.seen.cuts if place_of(one) == place_of(cut)]
    expected = any(one.in_optimizer or one.wanted or one.waiting for one in learners)
    return expected or cut.inside or any(one.feeds_graph for one in used)


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
