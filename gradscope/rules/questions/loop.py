"""Rules about the training loop: gradients that pile up or are dropped, graphs that grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from gradscope.model.loop_observations import WastedCalls
from gradscope.model.observations import Carried, EmptyStep, Location, Step
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.disorders import out_of_order
from gradscope.rules.questions.places import same_line
from gradscope.words import count

FEWEST_GROWTHS = 3
"""Steps in a row that a graph grows by the same amount, before it is called growing."""

MOST_NORMS = 8
"""Steps whose gradient norm is written out."""

FEWEST_EMPTY = 2
"""Steps without a gradient before they are called a mistake."""

FEWEST_UNUSED = 2
"""Backward calls of a program that ends without a step, before that is called a mistake."""

FEWEST_WASTED = 3
"""Backward calls that leave nothing, and at least as many as are used, before that is called a
mistake."""

FEWEST_DROPPED = 3
"""Times in a row that gradients are dropped unused, before that is called a mistake."""


def gradients_accumulate(facts: Facts) -> Iterable[FindingDraft]:
    """GS501: nothing zeroes the gradients between two steps of the optimizer."""
    steps = facts.seen.steps
    piled = [step for step in steps if step.reused]
    if not piled:
        return
    step = piled[0]
    # One step more, beside those that do zero, is the odd one.
    is_odd = not any(same_line(facts, one.reused_by, one.used_by) for one in piled)
    better = facts.seen.zeroed if step.in_closure else step.reused_by if is_odd else None
    yield facts.warning(
        "Gradients pile up: the function that the step calls again and again does not zero them."
        if step.in_closure
        else "Gradients pile up: nothing zeroes them between two steps.",
        location=facts.location(better) or facts.location(step.origin),
        evidence=(
            f"{count(step.reused, 'parameter')} updated with a gradient that still held the one "
            f"of the update before; seen at {count(len(piled), 'backward call')}",
            *_between(facts, step, is_odd),
            *_norms(steps),
        ),
        why="backward adds to .grad. Each step therefore goes along the sum of all gradients so "
        "far, not along the gradient.",
        remedy="Call `optimizer.zero_grad()` at the beginning of that function."
        if step.in_closure
        else "Call `optimizer.zero_grad()` once for every `optimizer.step()`.",
        step=step.number,
    )


def _between(facts: Facts, step: Step, is_odd: bool) -> Iterable[str]:
    """What was called between the two steps, and what was not."""
    backward, before = facts.location(step.origin), facts.location(step.used_by)
    if backward and step.in_closure:
        yield f"backward is called inside of the step, at {backward}"
    elif backward and before and is_odd:
        yield (f"used at {before}; added to at {backward}; used once more here")
    where = "outside of it" if step.in_closure else "but not between these steps"
    yield from _zeroed(facts, f"zero_grad is called at {{}}, {where}")


def _zeroed(facts: Facts, words: str, origin: int | None = None) -> Iterable[str]:
    """Where the program calls ``zero_grad``, if it does."""
    place = facts.location(facts.seen.zeroed if origin is None else origin)
    if place is not None:
        yield words.format(str(place))


def _norms(steps: Sequence[Step]) -> Iterable[str]:
    norms = [short(step.norm) for step in steps if step.norm is not None]
    if len(norms) > 1:
        more = f" and {len(norms) - MOST_NORMS:,} more" * (len(norms) > MOST_NORMS)
        yield f"‖g‖ of the new gradients: {', '.join(norms[:MOST_NORMS])}{more}"


def growing_graph(facts: Facts) -> Iterable[FindingDraft]:
    """GS502: a graph that goes back one step further with every step."""
    carried = [entry for entry in facts.seen.carried if entry.times >= FEWEST_GROWTHS]
    for entry in carried:
        name = entry.variable or facts.expression(entry.origin) or entry.function
        yield facts.warning(
            f"{name} keeps the graph of every step alive: its history grows.",
            location=facts.location(entry.origin) or facts.location(facts.seen.steps[-1].origin),
            subject=entry.variable,
            evidence=_growth_of(facts, entry),
            why="It is a tensor with history, so every step it was made in stays in memory, and "
            "backward from it would go through all of them.",
            remedy="For a running value add `loss.item()` or `loss.detach()`; detach a state "
            "before it goes into the next step.",
        )
    growth = _growth(facts.seen.steps)
    if growth and not carried:
        yield _grows(facts, growth)


def _growth_of(facts: Facts, entry: Carried) -> str:
    if entry.function == "append":
        where = f", put there by {facts.expression(entry.origin)}" if entry.origin else ""
        return f"it holds results of {entry.times:,} earlier steps with their graphs{where}"
    stored = facts.location(entry.stored)
    where = f"; stored at {stored}" if stored else ""
    return f"took its own result of the step before in {entry.times:,} steps in a row{where}"


def _growth(steps: Sequence[Step]) -> Sequence[Step]:
    """The last steps, if each had more nodes than the one before by the same amount."""
    # Inner steps by torch.autograd.grad are meant to go through each other; where there is nothing
    # else, as in a simulation, they are the steps.
    tail = ([step for step in steps if step.accumulates] or steps)[-(FEWEST_GROWTHS + 1) :]
    more = [after.nodes - before.nodes for before, after in itertools.pairwise(tail)]
    steady = len(more) == FEWEST_GROWTHS and more[0] > 0 and len(set(more)) == 1
    return tail if steady else ()


def _grows(facts: Facts, steps: Sequence[Step]) -> FindingDraft:
    sizes = ", ".join(f"{step.nodes:,}" for step in steps)
    return facts.warning(
        "The graph grows from step to step: each backward goes through all steps before.",
        location=facts.location(steps[-1].origin),
        evidence=f"nodes: {sizes}",
        why="Something made in one step, with its history, goes into the next: a hidden state, a "
        "running value. retain_graph=True lets that pass, and it gets slower and larger.",
        remedy="Detach what is carried over: `state = state.detach()`.",
        step=steps[-1].number,
    )


def gradients_unused(facts: Facts) -> Iterable[FindingDraft]:
    """GS505: gradients are dropped before any step has used them."""
    for entry in facts.seen.empty_steps:
        if entry.times >= FEWEST_EMPTY:
            yield _part_dropped(facts, entry) if entry.in_part else _dropped(facts, entry)
    for wasted in facts.seen.wasted_calls:
        if wasted.stepped is None or wasted.dropped < FEWEST_WASTED:
            continue
        if wasted.dropped >= wasted.applied:
            yield _wasted(facts, wasted)
        elif wasted.window:
            yield _remainder(facts, wasted)
    yield from out_of_order("optimizer idle")(facts)
    yield from _never_used(facts)


_ORDER = "the order is `optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`."


def _dropped(facts: Facts, entry: EmptyStep) -> FindingDraft:
    where = facts.at(entry.origin)
    zeroed = facts.location(entry.zeroed)
    if entry.too_soon:
        dropped = f"; what was there had been dropped at {zeroed}" if zeroed else ""
        return _unused(
            facts,
            facts.location(entry.origin),
            f"{facts.expression(entry.origin) or 'The step'} comes before the backward call whose "
            "gradients it needs.",
            [
                f"{count(entry.times, 'step')} without any gradient, between a forward pass "
                f"and its backward{dropped}"
            ],
            f"Step after backward; {_ORDER}",
        )
    return _unused(
        facts,
        zeroed or facts.location(entry.origin),
        f"{facts.expression(entry.zeroed) or 'Something'} drops the gradients between backward and "
        "the step that needs them.",
        [
            f"{count(entry.times, 'step')}{where} without any gradient, after a backward call that "
            "brought some",
        ],
        f"Between backward and step nothing may zero the gradients; {_ORDER}",
    )


def _part_dropped(facts: Facts, entry: EmptyStep) -> FindingDraft:
    where = facts.at(entry.origin)
    return _unused(
        facts,
        facts.location(entry.zeroed) or facts.location(entry.origin),
        "zero_grad drops gradients that a later step needs: the step goes on with the others.",
        [
            f"what backward had brought {count(entry.parameters, 'parameter')} was gone at the step"
            f"{where}; {count(entry.times, 'time')}",
        ],
        "Zero the gradients of all optimizers before the first backward call, or after the last "
        "step: what two of them hold, or one loss alone reaches, is lost between.",
    )


def _wasted(facts: Facts, entry: WastedCalls) -> FindingDraft:
    left = f"{count(entry.dropped, 'backward call')} of {entry.dropped + entry.applied:,} left "
    left += f"nothing; the step{facts.at(entry.stepped)} used the others"
    if entry.behind:
        return _unused(
            facts,
            facts.location(entry.stepped),
            f"{facts.expression(entry.stepped) or 'The step'} stands behind the loop of its "
            "backward calls, and uses the last of them only.",
            [left, *_zeroed(facts, "zero_grad is called in that loop, at {}", entry.origin)],
            "Step inside of the loop, after each backward.",
        )
    return _unused(
        facts,
        facts.location(entry.origin),
        "zero_grad drops the gradients of backward calls before any step has used them.",
        [left],
        "Zero the gradients where the step is, once for each step; then the backward calls between "
        "two steps add up.",
    )


def _remainder(facts: Facts, entry: WastedCalls) -> FindingDraft:
    return facts.finding(
        "information",
        "zero_grad drops the gradients of the last batches, which are too few for a step.",
        location=facts.location(entry.origin),
        evidence=(
            f"{count(entry.dropped, 'backward call')} left nothing; each "
            f"step{facts.at(entry.stepped)} used {entry.window}",
        ),
        why="The number of batches is no multiple of those that are added up: what the rest of an "
        "epoch brings is in .grad when the next begins, and nothing learns from it.",
        remedy="Step once more after the last batch, or take as many batches as fill the steps.",
    )


def _never_used(facts: Facts) -> Iterable[FindingDraft]:
    """The program zeroes gradients, or just ends, and no step was ever made."""
    held = [item for item in facts.seen.learners if item.leaf is not None]
    # A scaler leaves out, and is right to, steps whose gradients are not finite.
    counted = (step for step in reversed(facts.seen.steps) if not isinstance(step.norm, str))
    streak = list(itertools.takewhile(lambda step: step.dropped, counted))
    ended = facts.seen.never_stepped and facts.seen.calls >= FEWEST_UNUSED
    if any(step.stepped for step in facts.seen.steps):
        return
    if len(streak) < FEWEST_DROPPED and not ended:
        return
    if held and all(item.in_optimizer for item in held) and not facts.seen.empty_steps:
        said, remedy = _no_step(facts)
        zeroed = list(_zeroed(facts, "zero_grad is called between them at {}"))
        # Who never asks the optimizer for anything may take the scheduler for one.
        taken = (one.called for one in facts.seen.schedules if one.called is not None)
        mistaken = None if zeroed else next(taken, None)
        if mistaken is not None:
            said = f"{facts.expression(mistaken)} steps a scheduler, and no optimizer ever steps."
            remedy = "A scheduler sets the learning rate, and changes no parameter: call the "
            remedy += "optimizer's `step()` before it."
        yield _unused(
            facts,
            facts.location(facts.seen.guard)
            or facts.location(mistaken)
            or facts.location(facts.seen.steps[-1].origin),
            "The gradients are zeroed, and no optimizer has used them."
            if streak and mistaken is None
            else said,
            [
                f"{count(max(len(streak) + 1, ended * facts.seen.calls), 'backward call')} without "
                "any step: no parameter has changed",
                *zeroed,
            ],
            remedy,
        )


def _no_step(facts: Facts) -> tuple[str, str]:
    """Why no step was made, and what to do."""
    guard = facts.expression(facts.seen.guard)
    if facts.seen.guard is None:
        return (
            "No optimizer has used the gradients: there was no step.",
            "Call `optimizer.step()` after backward, before the gradients are zeroed; to add up "
            "the gradients of several batches, zero them only after the step.",
        )
    if facts.seen.guards_else:
        return (
            f"No step was made: {guard} was never reached.",
            "Call it whichever way the `if` goes: a scheduler sets the learning rate, and makes no "
            "step.",
        )
    return (
        f"No step was made: {guard} was never true.",
        "Count the batches over all epochs, or make the step also after the last one of each.",
    )


def _unused(
    facts: Facts, location: Location | None, message: str, evidence: Iterable[str], remedy: str
) -> FindingDraft:
    return facts.warning(
        message,
        location=location,
        evidence=evidence,
        why="A step changes parameters by what is in .grad at that moment; where that is None or "
        "0, nothing is learned.",
        remedy=remedy,
    )
