"""GS401 saved-tensor-changed

A tensor was changed in place after an operation had saved it for backward; or through `.data` or
`detach()`, which torch does not notice.

## How it is recognised

Reading the saved tensor fails, and the in-place call that changed its memory is known; of one
that was not seen no more is said. An operation may change what is its own: an embedding with
`max_norm` its weight, an instance norm its running statistics. Found with or without a backward
call.

It is a warning where the memory was written while its version counter stayed, so that backward
runs, and computes with the new numbers. The running statistics of a batch norm count: a call in
eval mode needs them in backward, and a later call in train mode changes them.

Where the step of an optimizer has changed it, and the same line called backward before that step,
the finding is at what is carried over from then.

## A program that has it, healed

```diff
 import torch

 x = torch.randn(4, requires_grad=True)
 y = torch.tanh(x)
-y += 1
+y = y + 1
 y.sum().backward()
```

## When to ignore it

Where a change that torch does not notice is undone before backward.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Change, MistakenCall
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule
from gradscope.words import listed


class SavedTensorChanged(Rule):
    code = "GS401"
    name = "saved-tensor-changed"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # What one place changes is one finding, whatever has saved it.
        places: dict[tuple[bool, int | None], dict[int | None, list[Change]]] = {}
        for change in facts.seen.changes:
            saver, place = facts.graph.nodes[change.node].origin, (change.silent, change.origin)
            places.setdefault(place, {}).setdefault(saver, []).append(change)
        for (is_silent, origin), savers in sorted(places.items(), key=lambda one: one[0][0]):
            changes = [one for changes in savers.values() for one in changes]
            yield (_silent if is_silent else _changed)(facts, origin, changes)
        if all(is_silent for is_silent, _ in places):
            yield from (finding for _, finding in read(facts, (_UNSEEN,)))


_UNSEEN = ErrorReading(
    "modified by an inplace operation",
    "A tensor was changed in place after an operation had saved it for backward.",
    "Backward needs it as it was.",
    "Use out-of-place operations (`x = x + y` for `x += y`), or clone it first.",
)


def _carried_over(facts: Facts) -> MistakenCall | None:
    """What an earlier round of the loop made, and the backward call of this one goes through."""
    lines = [step.origin for step in facts.seen.steps]
    older = (one for one in facts.seen.mistaken_calls if one.kind == "stale part")
    return next((one for one in older if lines.count(one.other) > 1), None)


def _changed(facts: Facts, origin: int | None, changes: list[Change]) -> FindingDraft:
    first = changes[0]
    name, _, own = first.function.partition(": ")
    what, saver = facts.expression(origin) or name, facts.words(first.node)
    places = [facts.location(facts.graph.nodes[change.node].origin) for change in changes]
    saved = listed(str(place) for place in places if place is not None)
    evidence = [f"{facts.op(first.node)} saved it as {first.slot}{f' at {saved}' if saved else ''}"]
    evidence.append(f"changed by {name or 'a call that was not seen'}")
    is_step = name.endswith(".step")
    older = _carried_over(facts) if is_step else None
    message = (
        f"{what} changes {own}, which {saver} had saved for backward."
        if own
        else f"{what} changes a tensor in place that {saver} had saved for backward."
        if what
        else f"A tensor that {saver} had saved for backward is changed in place."
    )
    if older is not None:
        evidence[1] += facts.at(origin)
        earlier = facts.expression(older.origin) or "an earlier step"
        message = f"What {earlier} gave is from before {what}, which changed a tensor that its "
        message += "graph had saved for backward."
    return facts.finding(
        "error",
        message,
        first.node,
        location=(facts.location(older.origin) if older else None) or facts.location(origin),
        evidence=evidence,
        fails=True,
        why="Backward of that operation needs the tensor as it was, and torch refuses to go on "
        "with another.",
        remedy=_AROUND_A_STEP.format(saver) if is_step else _OUT_OF_PLACE,
    )


_AROUND_A_STEP = (
    "Compute {} anew for a backward that comes after the step; or step after that backward, where "
    "its gradient is to be a part of the step, for it is added to .grad. Of a state that is "
    "carried over keep the value alone: `state = state.detach()`."
)
_OUT_OF_PLACE = (
    "Use the out-of-place operation (`x = x + y` for `x += y`, `inplace=False`), clone the tensor "
    "first, or move the change behind backward."
)


def _silent(facts: Facts, origin: int | None, changes: list[Change]) -> FindingDraft:
    first = changes[0]
    why, remedy = _BATCH_NORM if first.function == "batch_norm" else _BEHIND_TORCH
    return facts.warning(
        f"{facts.expression(origin) or first.function} changes a tensor that backward still needs, "
        "without torch noticing.",
        first.node,
        location=facts.location(origin),
        evidence=(
            f"{facts.op(first.node)} had saved it as {first.slot}",
            f"needed by {listed(facts.words(change.node) for change in changes)}",
        ),
        why=why,
        remedy=remedy,
    )


_BEHIND_TORCH = (
    "The version counter stayed as it was, as it does through .data or detach(), so backward runs, "
    "and computes with the new numbers: where these differ, the gradient is silently wrong.",
    "Change it after backward, change a clone, or use an out-of-place operation.",
)
_BATCH_NORM = (
    "In train mode a batch norm updates its running statistics, which torch does not count as a "
    "change; the call in eval mode before it needs them as they were, so its gradient is wrong.",
    "Call backward before the next forward pass in train mode, or run both passes in one mode.",
)
