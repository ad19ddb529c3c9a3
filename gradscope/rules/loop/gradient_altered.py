"""GS504 gradient-altered

A hook changes a gradient on its way. Information, unless it leaves parameters nothing at all.

## How it is recognised

The numbers of a gradient behind a hook differ from those before it, also behind the backward
hook of a module; or those that arrive from those that were sent, by a hook or a backward that
was not seen.

A warning where a hook on a tensor inside of the graph gives nothing but zeros for a gradient
that is not zero, and parameters get nothing else in any call. Where several gradients arrive at
that tensor, a hook is blamed only if their norms show that the sum of them is not zero.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
-w.register_hook(lambda grad: -grad)
 (w * 2).sum().backward()
```

## When to ignore it

Where it is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Alteration
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.stops import alive, silenced
from gradscope.rules.rule import Rule
from gradscope.words import count, listed


class GradientAltered(Rule):
    code = "GS504"
    name = "gradient-altered"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        if facts.seen.failure is not None and facts.seen.failure.in_backward:
            return  # what hooks would have made of the gradient in the end was not seen
        told: set[int | None] = set()
        for entry in facts.seen.alterations:
            if entry.origin not in told:
                told.add(entry.origin)
                yield _altered(facts, entry)


def _altered(facts: Facts, entry: Alteration) -> FindingDraft:
    is_seen = entry.origin is not None
    place = facts.expression(entry.origin) or entry.function
    who = f"A hook ({place})" if is_seen else "Something that was not seen"
    silenced, change = _silenced(facts, entry), _change(facts, entry)
    # What a module's hook returns goes to what is below that module, which is not the subject.
    of_module = entry.function.startswith("register_full_backward")
    return facts.finding(
        "warning" if silenced else "information",
        f"{who} makes the gradient zero." if silenced else f"{who} changes a gradient on its way.",
        entry.node,
        location=facts.location(entry.origin),
        subject="" if of_module or entry.node is None else facts.subject(entry.node),
        evidence=(
            f"{entry.function}: {change}" if is_seen else change,
            *([f"nothing but zeros for {listed(silenced)}"] if silenced else []),
        ),
        why="Everything below gets the changed gradient.",
        remedy=_UNHOOK if is_seen else _UNSEEN,
    )


def _silenced(facts: Facts, entry: Alteration) -> list[str]:
    """The leaves that get nothing because a hook gave zeros for a gradient inside of the graph; one
    on a leaf freezes that leaf on purpose, and one that does so in some calls only, all below."""
    if entry.node is None or facts.graph.nodes[entry.node].kind == "leaf":
        return []
    # What arrived is not known as one number where several gradients did.
    if entry.before == 0 or entry.after is None or float(entry.after):
        return []
    names = silenced(facts, entry.node)
    return [] if alive(facts).issuperset(names) else names


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


_UNHOOK = "Nothing, if it is meant (gradient reversal, scaling); else remove the hook."
_UNSEEN = (
    "Nothing, if it is meant; else look for a hook, or for a backward that writes into what it is "
    "given."
)
