"""Rules about the training loop: gradients that pile up, graphs that grow, losses that broadcast,
gradients that something changes on the way."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import msgspec

from gradscope.diagnose._facts import Facts, plural, short
from gradscope.diagnose._ops import REDUCING
from gradscope.observations import Alteration, Broadcast, Carried, Finding, Location, Step

FEWEST_GROWTHS = 3
"""Steps in a row that a graph grows by the same amount, before it is called growing."""

MOST_NORMS = 8
"""Steps whose gradient norm is written out."""

FEWEST_EMPTY = 2
"""Steps without a gradient before they are called a mistake."""

FEWEST_DROPPED = 3
"""Times in a row that gradients are dropped unused, before that is called a mistake."""

CLIPPED = 0.01
"""Clipping that leaves less of a gradient decides the size of every step by itself."""


def gradients_accumulate(facts: Facts) -> Iterable[Finding]:
    """GS501: nothing zeroes the gradients between two steps of the optimizer."""
    steps = facts.seen.steps
    piled = [step for step in steps if step.reused]
    if not piled:
        return
    step = piled[0]
    yield Finding(
        rule="",
        name="",
        severity="warning",
        message="Gradients pile up: nothing zeroes them between two steps.",
        location=facts.location(step.origin),
        evidence=(
            f"{plural(step.reused, 'parameter')} updated with a gradient that still held the one "
            f"of the update before; seen at {plural(len(piled), 'backward call')}",
            *_norms(steps),
        ),
        why="backward adds to .grad. Each step therefore goes along the sum of all gradients so "
        "far, not along the gradient.",
        remedy="Call `optimizer.zero_grad()` once for every `optimizer.step()`.",
        step=step.number,
    )


def _norms(steps: Sequence[Step]) -> Iterable[str]:
    norms = [short(step.norm) for step in steps if step.norm is not None]
    if len(norms) > 1:
        more = f" and {len(norms) - MOST_NORMS:,} more" * (len(norms) > MOST_NORMS)
        yield f"‖g‖ of the new gradients: {', '.join(norms[:MOST_NORMS])}{more}"


def growing_graph(facts: Facts) -> Iterable[Finding]:
    """GS502: a graph that goes back one step further with every step."""
    carried = [entry for entry in facts.seen.carried if entry.times >= FEWEST_GROWTHS]
    for entry in carried:
        name = entry.variable or facts.expression(entry.origin) or entry.function
        yield Finding(
            rule="",
            name="",
            severity="warning",
            message=f"{name} keeps the graph of every step alive: its history grows.",
            location=facts.location(entry.origin) or facts.location(facts.seen.steps[-1].origin),
            subject=entry.variable,
            evidence=(_growth_of(facts, entry),),
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
    return f"took its own result of the step before in {entry.times:,} steps in a row"


def _growth(steps: Sequence[Step]) -> Sequence[Step]:
    """The last steps, if each had more nodes than the one before by the same amount."""
    # Inner steps by torch.autograd.grad are meant to go through each other; where there is nothing
    # else, as in a simulation, they are the steps.
    tail = ([step for step in steps if step.accumulates] or steps)[-(FEWEST_GROWTHS + 1) :]
    more = [after.nodes - before.nodes for before, after in itertools.pairwise(tail)]
    steady = len(more) == FEWEST_GROWTHS and more[0] > 0 and len(set(more)) == 1
    return tail if steady else ()


def _grows(facts: Facts, steps: Sequence[Step]) -> Finding:
    sizes = ", ".join(f"{step.nodes:,}" for step in steps)
    return Finding(
        rule="",
        name="",
        severity="warning",
        message="The graph grows from step to step: each backward goes through all steps before.",
        location=facts.location(steps[-1].origin),
        evidence=(f"nodes: {sizes}",),
        why="Something made in one step, with its history, goes into the next: a hidden state, a "
        "running value. retain_graph=True lets that pass, and it gets slower and larger.",
        remedy="Detach what is carried over: `state = state.detach()`.",
        step=steps[-1].number,
    )


def gradients_unused(facts: Facts) -> Iterable[Finding]:
    """GS505: gradients are dropped before any step has used them."""
    for entry in facts.seen.empty_steps:
        if entry.times >= FEWEST_EMPTY:
            yield _unused(
                facts.location(entry.origin),
                "The optimizer steps, but its gradients are gone: something (zero_grad) dropped "
                "them after backward.",
                f"{plural(entry.times, 'step')} without any gradient, after a backward call that "
                "brought some",
                "Between backward and step nothing may zero the gradients: call "
                "`optimizer.zero_grad()` before backward, or after `optimizer.step()`.",
            )
    held = [item for item in facts.seen.learners if item.leaf is not None]
    # A scaler leaves out, and is right to, steps whose gradients are not finite.
    counted = (step for step in reversed(facts.seen.steps) if not isinstance(step.norm, str))
    streak = list(itertools.takewhile(lambda step: step.dropped, counted))
    if any(step.stepped for step in facts.seen.steps) or len(streak) < FEWEST_DROPPED:
        return
    if held and all(item.in_optimizer for item in held) and not facts.seen.empty_steps:
        yield _unused(
            facts.location(streak[0].origin),
            "The gradients are zeroed, and no optimizer has used them: nothing ever steps.",
            f"{plural(len(streak) + 1, 'backward call')}, and no parameter has changed",
            "Call `optimizer.step()` after backward, before the gradients are zeroed.",
        )


def _unused(location: Location | None, message: str, evidence: str, remedy: str) -> Finding:
    return Finding(
        rule="",
        name="",
        severity="warning",
        message=message,
        location=location,
        evidence=(evidence,),
        why="A step changes parameters by what is in .grad at that moment; where that is None or "
        "0, nothing is learned.",
        remedy=remedy,
    )


_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")
_MEANT = re.compile(
    r"None\b|unsqueeze|\.T\b|\.mT\b|transpose|outer|\[:, *None|keepdim|view|reshape"
)
"""Words in an expression that show that its author thought of the shapes."""


def loss_broadcasts(facts: Facts) -> Iterable[Finding]:
    """GS503: a loss between (n, 1) and (n,), which has n·n elements."""
    places: set[int | None] = set()
    for entry in facts.seen.broadcasts:
        expression = facts.expression(entry.origin)
        is_loss = entry.function in _LOSSES
        if entry.origin in places or not _is_mixed(entry) or _MEANT.search(expression):
            continue
        if not is_loss and not _feeds_loss(facts, entry.origin):
            continue
        places.add(entry.origin)
        yield _broadcast(facts, entry)


def _is_mixed(entry: Broadcast) -> bool:
    """Whether the operands are the same but for one dimension of length 1, which only one has."""
    if len(entry.shapes) != 2:
        return False
    low, high = sorted(entry.shapes, key=len)
    return len(high) == len(low) + 1 and any(
        size == 1 and high[:at] + high[at + 1 :] == low for at, size in enumerate(high)
    )


def _feeds_loss(facts: Facts, origin: int | None) -> bool:
    """Whether only elementwise operations and a reduction lie between a place and the root."""
    pending = [root.node for root in facts.graph.roots]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if facts.graph.nodes[node].origin == origin:
            return True
        if facts.op(node) in REDUCING:
            fresh = [below for below in facts.below(node) if below not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return False


def _broadcast(facts: Facts, entry: Broadcast) -> Finding:
    shapes = " and ".join(str(list(shape)) for shape in entry.shapes)
    result = str(list(entry.result))
    words = facts.expression(entry.origin) or entry.function
    node = next((n.id for n in facts.graph.nodes if n.origin == entry.origin), None)
    return Finding(
        rule="",
        name="",
        severity="warning",
        message=f"{words} broadcasts its operands against each other.",
        location=facts.location(entry.origin),
        node=None if node is None else facts.reference(node),
        subject=_variable(facts, entry.origin),
        evidence=(f"{shapes} make {result}",),
        why="Every element meets every other, not only its own partner; the mean of that has its "
        "minimum at the mean of the targets.",
        remedy="Give both the same shape: `prediction.squeeze(-1)`, or `target.unsqueeze(-1)`.",
    )


def _variable(facts: Facts, origin: int | None) -> str:
    return "" if origin is None else facts.graph.origins[origin].variable


def gradient_altered(facts: Facts) -> Iterable[Finding]:
    """GS504: a hook or clipping changes a gradient on its way."""
    if facts.seen.failure is not None and facts.seen.failure.in_backward:
        return  # then a hook, if it is to blame, has a finding of its own
    told: set[int | None] = set()
    for entry in facts.seen.alterations:
        if entry.origin not in told and _matters(entry):
            told.add(entry.origin)
            yield _altered(facts, entry)
    altered = facts.backward.altered if facts.backward else ()
    for node in altered[:1] if not told else ():
        yield msgspec.structs.replace(
            facts.about(
                node, "information", f"A hook changes the gradient of {facts.words(node)}."
            ),
            evidence=(f"{plural(len(altered), 'node')} whose gradient a hook replaced",),
            why="What arrives there is not the sum of what was sent.",
            remedy="Nothing, if it is meant.",
        )


def _matters(entry: Alteration) -> bool:
    """Clipping now and then is ordinary; clipping nearly everything away is worth a word."""
    if not entry.function.startswith("clip"):
        return True
    if entry.before is None or entry.after is None:
        return False
    return float(entry.after) < CLIPPED * float(entry.before)


def _altered(facts: Facts, entry: Alteration) -> Finding:
    clipped = entry.function.startswith("clip")
    place = facts.expression(entry.origin) or entry.function
    return Finding(
        rule="",
        name="",
        severity="information",
        message=f"{place} leaves next to nothing of the gradient."
        if clipped
        else f"A hook ({place}) changes a gradient on its way.",
        location=facts.location(entry.origin),
        node=None if entry.node is None else facts.reference(entry.node),
        subject="" if entry.node is None else facts.subject(entry.node),
        evidence=(
            f"{entry.function}: ‖g‖ {short(entry.before)} before, {short(entry.after)} after",
        ),
        why="The limit, not the loss, decides how large every step is."
        if clipped
        else "Everything below gets the changed gradient.",
        remedy="Raise the limit to the size that gradients usually have."
        if clipped
        else "Nothing, if it is meant (gradient reversal, scaling); else remove the hook.",
    )
