"""Rules about NaN and infinity: where the first ones are born, forward and backward.

A place may be to blame besides the node that made them: the line inside of a custom Function, or
the eps that was to keep a divisor away from 0 and is 0 itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.observations import Birth, Intake, Location, Rounding, Saved
from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions.advice import (
    AT_ENDS,
    BACKWARD,
    BACKWARD_ELSE,
    EMPTY,
    FORWARD,
    OVERFLOWING,
    TAKEN,
    TOO_LARGE,
    UNDEFINED,
    WRITTEN,
    Advice,
)
from gradscope.rules.questions.nonfinite_evidence import aftermath, counts, way_lines
from gradscope.rules.questions.nonfinite_sources import MOST, BackwardSources, ForwardSources
from gradscope.rules.questions.ops import POLES, WEIGHING
from gradscope.words import count, listed, option

_DIRECT = 6
"""Nodes between a guarded operation and the `where` that is meant to guard it."""


def nonfinite_forward(facts: Facts) -> Iterable[FindingDraft]:
    """GS101: the first NaN or infinity of the forward pass."""
    forward = facts.once(ForwardSources)
    for nodes in list(facts.by_place(forward.born).values())[:MOST]:
        yield _forward_finding(facts, forward, nodes)
    if not (forward.born or forward.taken or forward.leaves) and _loss_is_bad(facts):
        yield _bad_loss(facts)
    left_out = facts.once(_left_out)
    for nodes in list(facts.by_place(left_out).values())[:MOST]:
        yield _left_out_finding(facts, forward, nodes, left_out[nodes[0]])


def _left_out(facts: Facts) -> dict[int, int]:
    """NaN of the forward pass that the loss does not contain, by the node that made it: the node
    whose backward meets it."""
    forward = facts.once(ForwardSources)
    if forward.roots or _loss_is_bad(facts):
        return {}
    born = facts.once(BackwardSources).born
    return {cause: node for node in reversed(born) for cause in forward.behind(node)}


def _forward_finding(facts: Facts, forward: ForwardSources, nodes: list[int]) -> FindingDraft:
    what = "NaN" if forward.nan[nodes[0]] else "infinity"
    node = forward.guilty(nodes[0])
    known = blame(facts, node, in_backward=False)
    advice = _advice(facts, forward, node, nodes[0]) if known is None else known.advice
    is_masked = forward.masks(nodes[0]) or forward.sources(nodes[0])
    masked = " but for a mask of infinities" if is_masked else ""
    return facts.finding(
        "error",
        f"{known.words if known else facts.words(node)} makes the first {what}; what goes into it "
        f"is finite{masked}.",
        node,
        location=known.location if known else None,
        evidence=(
            *(known.lines if known else ()),
            *_masked_rows(facts, forward, node, nodes[0]),
            *counts(facts, nodes),
            aftermath(facts, forward),
            *way_lines(facts, forward, nodes[0]),
        ),
        why=advice.why,
        remedy=advice.remedy,
        nodes=nodes,
    )


def _masked_rows(facts: Facts, forward: ForwardSources, node: int, result: int) -> Iterable[str]:
    """The row that a softmax inside of a call was given, where all of it is masked."""
    rows = [one.row for one in forward.masks(result) if one.row is not None]
    for row in rows[:1]:
        yield f"{facts.op(node)} in it: row {list(row)} of the mask is -inf from end to end"


def _advice(facts: Facts, forward: ForwardSources, node: int, result: int) -> Advice:
    """What there is to say of a node that made NaN or infinity, which showed in ``result``."""
    if forward.nan[result] and any(not facts.has_elements(below) for below in facts.below(node)):
        return EMPTY
    masks = forward.masks(result)
    if masks and all(one.row is None for one in masks):
        return UNDEFINED
    return FORWARD.get(facts.op(node), UNDEFINED if forward.nan[result] else OVERFLOWING)


def _loss_is_bad(facts: Facts) -> bool:
    loss = facts.loss
    return bool(facts.graph.roots) and isinstance(loss, str)


def _bad_loss(facts: Facts) -> FindingDraft:
    root = facts.graph.roots[0].node
    return facts.finding(
        "error",
        f"The loss {facts.words(root)} is {facts.loss}.",
        root,
        evidence=f"loss {facts.loss}",
        why="Where it became so was not seen; every gradient of it is NaN or meaningless.",
        remedy="Look at the operands of this expression, from here backward.",
        nodes=(),  # where it became so is not known
    )


def nonfinite_input(facts: Facts) -> Iterable[FindingDraft]:
    """GS105: NaN or infinity that was there before the first operation."""
    forward = facts.once(ForwardSources)
    for leaf in list(dict.fromkeys(forward.leaves))[:MOST]:
        yield _bad_leaf(facts, leaf)
    places: dict[object, Intake] = {}
    taken = forward.taken
    if not forward.roots:
        # The loss is finite, and backward met what the data held.
        taken = [one for node in facts.once(BackwardSources).born for one in forward.took(node)]
    # What was detached after something else had spoilt it is no source.
    cut = {known.origin for known in facts.seen.cuts if known.origin is not None}
    sources = [one for one in taken if one.made not in cut]
    for intake in sources if sources or forward.born else taken:
        places.setdefault((intake.made, intake.name), intake)
    for intake in list(places.values())[:MOST]:
        yield _bad_operand(facts, intake)


def _bad_leaf(facts: Facts, node: int) -> FindingDraft:
    leaf = next(leaf for leaf in facts.graph.leaves if leaf.node == node)
    name = facts.leaf_names[node]
    size = elements(leaf.tensor.shape)
    return facts.finding(
        "error",
        f"{name} itself holds NaN or infinity, before any operation of this step.",
        node,
        location=facts.location(leaf.origin),
        subject=name,
        evidence=f"{leaf.tensor.nan:,} NaN, {leaf.tensor.inf:,} infinite of {size:,}",
        why=WRITTEN.why,
        remedy=WRITTEN.remedy,
    )


def _bad_operand(facts: Facts, intake: Intake) -> FindingDraft:
    words = facts.words(intake.node)
    name = intake.name or facts.expression(intake.made) or "an operand"
    advice = WRITTEN if intake.name in facts.leaf_names.values() else TAKEN
    return facts.finding(
        "error",
        f"{name} holds NaN or infinity before it goes into {words}.",
        intake.node,
        location=facts.location(intake.made),
        subject=intake.name,
        evidence=f"{intake.nan:,} NaN, {intake.inf:,} infinite of {intake.count:,} elements",
        why=advice.why,
        remedy=advice.remedy,
    )


def nonfinite_backward(facts: Facts) -> Iterable[FindingDraft]:
    """GS102: the first NaN or infinity of the backward pass, where the loss is finite."""
    forward = facts.once(ForwardSources)
    if forward.roots or _loss_is_bad(facts):
        return  # then every gradient is a consequence
    backward = facts.once(BackwardSources)
    left_out = facts.once(_left_out)
    told = {facts.graph.nodes[cause].origin for cause in left_out} - {None}
    others = [
        node
        for node in backward.born
        if not forward.behind(node)
        and facts.graph.nodes[node].origin not in told
        and not forward.took(node)
    ]
    groups = facts.by_place(others)
    for nodes in list(groups.values())[:MOST]:
        yield _backward_finding(facts, backward, nodes)
    if backward.born_unseen:
        yield _unseen_finding(facts, backward.born_unseen)


def _left_out_finding(
    facts: Facts, forward: ForwardSources, nodes: list[int], taker: int
) -> FindingDraft:
    """A NaN of the forward pass that the loss does not contain, and every gradient does."""
    node = forward.guilty(nodes[0])
    advice = _advice(facts, forward, node, nodes[0])
    return facts.finding(
        "error",
        f"{facts.words(node)} makes NaN that the loss leaves out, not backward.",
        node,
        evidence=(
            *_masked_rows(facts, forward, node, nodes[0]),
            *counts(facts, nodes),
            f"backward of {facts.words(taker)} multiplies it by its gradient",
            *_flow_lines(facts, taker),
        ),
        why=f"A gradient of 0 times NaN is NaN. {advice.why}",
        remedy=f"{advice.remedy} To leave it out of the result afterwards is too late.",
        nodes=(taker,),
    )


def _backward_finding(facts: Facts, backward: BackwardSources, nodes: list[int]) -> FindingDraft:
    node = nodes[0]
    known = blame(facts, node, in_backward=True)
    advice = _backward_advice(facts, node) if known is None else known.advice
    guard = _guard(facts, node) if advice.remedy != TOO_LARGE.remedy else None
    why, remedy = advice
    if guard is not None:
        why = (
            f"{facts.words(guard)} does not take this branch, but backward still goes through it: "
            f"it sends a gradient of 0, and 0 times an infinite derivative is NaN. {why}"
        )
        remedy = (
            "Make the operand harmless before the operation, not the result after it: "
            "`x = torch.where(good, x, torch.ones_like(x))` and then the operation."
        )
    names = backward.spoilt[node]
    return facts.finding(
        "error",
        f"{known.words} makes the first NaN or infinity of backward."
        if known is not None and known.is_inside
        else f"Backward of {facts.words(node)} turns a finite gradient into NaN or infinity.",
        node,
        location=known.location if known else None,
        evidence=(
            *(known.lines if known else ()),
            *_flow_lines(facts, node),
            *(_saved_line(facts, s) for s in facts.seen.saved if s.node == node),
            f"spoils the gradient of {count(len(names), 'leaf').replace('leafs', 'leaves')}: "
            f"{listed(names)}",
        ),
        why=why,
        remedy=remedy,
        nodes=nodes,
    )


def _backward_advice(facts: Facts, node: int) -> Advice:
    """Why a gradient stopped being finite there, as far as what the node had saved tells."""
    op, saved = facts.op(node), [one for one in facts.seen.saved if one.node == node]
    # Of a quotient the divisor alone has a pole, of a length the length.
    ends = [one for one in saved if one.slot.startswith("other" if op == "Div" else "result")]
    odd = any(one.nan or one.inf or (op in BACKWARD and one.zeros) for one in ends or saved)
    if odd or op in AT_ENDS or (not saved and op in BACKWARD):
        return BACKWARD.get(op, BACKWARD_ELSE)
    if not saved:
        return Advice(TOO_LARGE.why, "")
    overflow = next((one.overflow for one in saved if one.overflow is not None), None)
    if overflow is None:
        return TOO_LARGE
    upstream, derivative, largest = map(short, overflow)
    why = f"What arrives times the local derivative, {upstream} times {derivative}, is beyond the "
    return Advice(f"{why}largest number of its dtype, {largest}.", TOO_LARGE.remedy)


def _unseen_finding(facts: Facts, spoilt: list[str]) -> FindingDraft:
    many = count(len(spoilt), "leaf").replace("leafs", "leaves")
    return facts.finding(
        "error",
        "Backward makes NaN or infinity; at which operation was not seen.",
        location=facts.location(facts.backward.origin if facts.backward else None),
        evidence=f"{many} with such a gradient: {listed(spoilt)}",
        why="This call was looked at only briefly, and none of the operations that usually do it "
        "is to blame: a gradient grew too large for its dtype.",
        remedy=f"Run it again with `{option('thorough')}`, which looks at every operation.",
    )


def _flow_lines(facts: Facts, node: int) -> Iterable[str]:
    norm = next((info.norm for info in facts.received(node) if info.norm is not None), None)
    bad = [info for _, info in facts.sent(node) if info.state == "non-finite"]
    nan, inf = sum(info.nan for info in bad), sum(info.inf for info in bad)
    yield f"received {short(norm)} (2-norm), sent {nan:,} NaN and {inf:,} infinite elements"


def _saved_line(facts: Facts, saved: Saved) -> str:
    zeros = f", {saved.zeros:,} of {saved.count:,} are 0" if saved.zeros else ""
    bad = f", {saved.nan:,} NaN, {saved.inf:,} infinite" if saved.nan or saved.inf else ""
    spread = f"from {short(saved.minimum)} to {short(saved.maximum)}"
    return f"{facts.op(saved.node)} saved {saved.slot} for backward: {spread}{zeros}{bad}"


def _guard(facts: Facts, node: int) -> int | None:
    """The `where` above a node that takes its result elementwise, if there is one."""
    level, seen = [node], {node}
    for _ in range(_DIRECT):
        level = [above for below in level for above in facts.above(below) if above not in seen]
        seen.update(level)
        for candidate in level:
            if facts.op(candidate) in ("Where", "MaskedFill"):
                return candidate
        level = [above for above in level if _is_elementwise(facts, above)]
    return None


def _is_elementwise(facts: Facts, node: int) -> bool:
    return facts.op(node) not in ("Sum", "Mean", "Mm", "Addmm", "Bmm", "Norm", "MseLoss")


BELOW = 6
"""Operations between a division or a root and the eps that was added for it."""

_OPS = {"truediv": "Div", "divide": "Div", "rtruediv": "Div", "rpow": "Pow", "float_power": "Pow"}

_EPS = Advice(
    "The number that was to keep the operand away from 0 is too small for {dtype}, and 0 itself.",
    "Take one that {dtype} can hold beside the operand, such as 1e-4, or compute this part in "
    "float32 (`.float()`).",
)


class Blame(NamedTuple):
    """What a finding says instead of the words for its node; ``is_inside``: of a line inside of
    it."""

    words: str
    location: Location | None
    lines: tuple[str, ...]
    advice: Advice
    is_inside: bool = False


def blame(facts: Facts, node: int, in_backward: bool) -> Blame | None:
    """The place that is to blame for the NaN that this node makes, if it is not the node's own."""
    found = (one for one in facts.seen.births if one.node == node)
    birth = next((one for one in found if one.in_backward == in_backward), None)
    if birth is not None and birth.origin is not None:
        return _inside(facts, birth)
    rounding = _rounding(facts, node)
    return None if rounding is None else _eps(facts, node, rounding)


def _inside(facts: Facts, birth: Birth) -> Blame:
    where = "the backward" if birth.in_backward else "the forward"
    inner = facts.expression(birth.origin) or f"`{birth.function}`"
    place = facts.location(facts.graph.nodes[birth.node].origin)
    at = f", {place}" if place is not None else ""
    return Blame(
        f"{inner} in {where} of {facts.op(birth.node)}",
        facts.location(birth.origin),
        (f"inside of {facts.words(birth.node)}{at}",),
        _advice_of(birth),
        is_inside=True,
    )


def _advice_of(birth: Birth) -> Advice:
    """What there is to say of the function of torch that it called."""
    name = birth.function.rstrip("_").removeprefix("_")
    return FORWARD.get(_OPS.get(name, name.capitalize()), UNDEFINED)


def _rounding(facts: Facts, node: int) -> Rounding | None:
    """The number below a node that was to keep its operand away from 0."""
    known = {one.node: one for one in facts.seen.roundings}
    if not known or facts.op(node) not in POLES:
        return None
    edges = facts.graph.edges
    # A division has its divisor second.
    slot = 1 if facts.op(node) == "Div" else 0
    level = [edges[index].target for index in facts.outgoing[node] if edges[index].slot == slot]
    for _ in range(BELOW):
        for one in level:
            if one in known:
                return known[one]
        # What a layer makes of it is another quantity.
        through = [one for one in level if facts.op(one) not in WEIGHING]
        level = list(dict.fromkeys(below for one in through for below in facts.below(one)))
    return None


def _eps(facts: Facts, node: int, rounding: Rounding) -> Blame:
    line = f"{facts.words(rounding.node)}: {short(rounding.value)} is 0 in {rounding.dtype}"
    advice = Advice(*(text.format(dtype=rounding.dtype) for text in _EPS))
    location = facts.location(facts.graph.nodes[rounding.node].origin)
    return Blame(facts.words(node), location, (line,), advice)
