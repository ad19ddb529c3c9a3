"""Rules about what the program does as it was told to, but perhaps not as it was meant: losses that
broadcast, gradients that something changes on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradscope.model.observations import Alteration, Broadcast
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.zeros import Zeros
from gradscope.words import count, listed

CLIPPED = 0.01
"""Clipping that leaves less of a gradient decides the size of every step by itself."""

_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")
_MEANT = re.compile(
    r"None\b|unsqueeze|\.T\b|\.mT\b|transpose|outer|\[:, *None|keepdim|view|reshape"
)
"""Words in an expression that show that its author thought of the shapes."""


def loss_broadcasts(facts: Facts) -> Iterable[FindingDraft]:
    """GS503: a loss between (n, 1) and (n,), or the like, which has n·n elements."""
    # Where the same two shapes meet at several places, one of them is wrong, and it is one cause.
    places: dict[frozenset[tuple[int, ...]], dict[int | None, Broadcast]] = {}
    for entry in facts.seen.broadcasts:
        is_loss = entry.function in _LOSSES
        # Where a loss of torch is given another number of dimensions, torch warns as well.
        is_odd = _is_mixed(entry) or (is_loss and len(set(map(len, entry.shapes))) > 1)
        is_summed = entry.reduced or is_loss
        if is_summed and is_odd and not _MEANT.search(facts.expression(entry.origin)):
            places.setdefault(frozenset(entry.shapes), {}).setdefault(entry.origin, entry)
    for entries in places.values():
        first, *others = entries.values()
        yield _broadcast(facts, first, others)


def _is_mixed(entry: Broadcast) -> bool:
    """Whether both operands begin with the same dimension, as samples do, and it is there twice in
    the result: they were aligned by other dimensions."""
    if len(entry.shapes) != 2:
        return False
    low, high = sorted(entry.shapes, key=len)
    # Of as many dimensions, as (n, 1) and (1, n), they were aligned on purpose.
    if len(low) == len(high) or not low or low[0] != high[0] or low[0] == 1:
        return False
    # Where two dimensions are as long as each other, one of them alone may be what was meant.
    fewer = max(low.count(low[0]), high.count(low[0]))
    is_same = [size for size in high if size > 1] == [size for size in low if size > 1]
    return entry.result.count(low[0]) > fewer and (fewer == 1 or is_same)


def _broadcast(facts: Facts, entry: Broadcast, others: Iterable[Broadcast]) -> FindingDraft:
    shapes = " and ".join(str(list(shape)) for shape in entry.shapes)
    result = str(list(entry.result))
    words = facts.expression(entry.origin) or entry.function
    node = next((n.id for n in facts.graph.nodes if n.origin == entry.origin), None)
    return facts.warning(
        f"{words} broadcasts its operands against each other.",
        node,
        location=facts.location(entry.origin),
        subject=facts.variable(entry.origin),
        evidence=(
            f"{shapes} make {result}",
            *(f"so they do in {facts.expression(one.origin) or one.function}" for one in others),
        ),
        why="Every element meets every other, not only its own partner; the mean of that has its "
        "minimum at the mean of the targets.",
        remedy="Give both the same shape: `prediction.squeeze(-1)` or `target.unsqueeze(-1)`, or "
        "`prediction.flatten(1)` where several dimensions are of length 1.",
    )


def gradient_altered(facts: Facts) -> Iterable[FindingDraft]:
    """GS504: a hook or clipping changes a gradient on its way."""
    if facts.seen.failure is not None and facts.seen.failure.in_backward:
        return  # what hooks would have made of the gradient in the end was not seen
    # What is clipped before it is divided by the scale is not too large: its order is wrong.
    scaled = {entry.origin for entry in facts.seen.disorders if entry.kind == "clip scaled"}
    told: set[int | None] = set()
    for entry in facts.seen.alterations:
        if entry.origin not in told | scaled and _matters(entry):
            told.add(entry.origin)
            yield _altered(facts, entry)
    altered = facts.backward.altered if facts.backward else ()
    for node in altered[:1] if not told else ():
        yield facts.finding(
            "information",
            f"Something that was not seen changes the gradient of {facts.words(node)}.",
            node,
            evidence=f"{count(len(altered), 'node')} whose gradient is not what was sent there",
            why="What arrives there is not the sum of what was sent.",
            remedy=_UNSEEN,
        )


def _matters(entry: Alteration) -> bool:
    """Clipping now and then is ordinary; clipping nearly everything away is worth a word."""
    if not entry.function.startswith("clip"):
        return True
    if entry.before is None or entry.after is None:
        return False
    return float(entry.after) < CLIPPED * float(entry.before)


def _silenced(facts: Facts, entry: Alteration) -> list[str]:
    """The leaves that get nothing because a hook gave zeros for a gradient inside of the graph; one
    on a leaf freezes that leaf on purpose."""
    if entry.node is None or facts.graph.nodes[entry.node].kind == "leaf":
        return []
    # What arrived is not known as one number where several gradients did.
    if entry.before == 0 or entry.after is None or float(entry.after):
        return []
    return facts.once(Zeros).silenced(entry.node)


def _change(facts: Facts, entry: Alteration) -> str:
    """The norms before and after; where the gradient was a sum, its parts are all that is known."""
    backward = facts.backward
    ways = [] if entry.node is None else facts.incoming[entry.node]
    if entry.before is not None or len(ways) < 2 or backward is None:
        shown = [(short(entry.before, n), short(entry.after, n)) for n in (3, 8)]
        before, after = next((two for two in shown if two[0] != two[1]), shown[0])
        is_same = before == after and entry.before is not None
        return f"‖g‖ {before} before, {after} after{', of other numbers' * is_same}"
    norms = [float(norm) for way in ways if (norm := backward.on_edge(way).norm) is not None]
    largest = f", the largest ‖g‖ {short(max(norms))}" if norms else ""
    return f"{count(len(ways), 'gradient')} had arrived{largest}; ‖g‖ {short(entry.after)} after"


def _altered(facts: Facts, entry: Alteration) -> FindingDraft:
    clipped, is_seen = entry.function.startswith("clip"), entry.origin is not None
    place = facts.expression(entry.origin) or entry.function
    who = f"A hook ({place})" if is_seen else "Something that was not seen"
    silenced = _silenced(facts, entry)
    why, remedy = _of_clipping(entry) if clipped else (_BELOW, _UNHOOK if is_seen else _UNSEEN)
    return facts.finding(
        "warning" if silenced else "information",
        f"{who} makes the gradient zero."
        if silenced
        else f"{place} leaves next to nothing of the gradient."
        if clipped
        else f"{who} changes a gradient on its way.",
        entry.node,
        location=facts.location(entry.origin),
        evidence=(
            f"{entry.function}: {_change(facts, entry)}" if is_seen else _change(facts, entry),
            *([f"nothing but zeros for {listed(silenced)}"] if silenced else []),
        ),
        why=why,
        remedy=remedy,
        step=entry.call,
    )


def _of_clipping(entry: Alteration) -> tuple[str, str]:
    """What the limit decides, and what to do, by the smallest norm that came there as well."""
    before, after, least = (float(one or 0) for one in (entry.before, entry.after, entry.least))
    why = _LIMIT if after < CLIPPED * least else ""
    if why and least > CLIPPED * before:
        return why, "Raise the limit to the size that gradients usually have."
    others = f", whose ‖g‖ was down to {short(least)} here" if least else ""
    return why, f"Look for what makes this gradient so much larger than others{others}."


_LIMIT = "The limit, not the loss, decides how large every step is."
_BELOW = "Everything below gets the changed gradient."
_UNHOOK = "Nothing, if it is meant (gradient reversal, scaling); else remove the hook."
_UNSEEN = (
    "Nothing, if it is meant; else look for a hook, or for a backward that writes into what it is "
    "given."
)
