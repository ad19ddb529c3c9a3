"""GS505 gradients-unused

Gradients are dropped before a step has used them, or there are none, as backward is never called.

## How it is recognised

- A step finds no gradient twice, or only zeros, though backward had brought some. The finding is
  at the `zero_grad` that drops them; at the step, where that comes before backward.
- All gradients are dropped three times in a row, or the program ends after two backward calls,
  and nothing has changed a leaf.
- An optimizer steps twice while `.grad` of all its parameters is None, and the program has made no
  backward call when it ends.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     loss = model(torch.randn(8, 4)).pow(2).mean()
+    optimizer.zero_grad()
     loss.backward()
-    optimizer.zero_grad()
     optimizer.step()
```

## When to ignore it

Gradients that are computed to be looked at, and an optimizer that is there for a later part of the
training.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.loop_observations import MistakenCall
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.optimizers import dropped, unstepped
from gradscope.rules.rule import Rule
from gradscope.words import count

FEWEST_EMPTY = 2
"""Steps without a gradient before they are called a mistake."""


class GradientsUnused(Rule):
    code = "GS505"
    name = "gradients-unused"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for entry in dropped(facts):
            if entry.times >= FEWEST_EMPTY:
                yield _empty(facts, entry)
        for entry in facts.seen.mistaken_calls if not facts.seen.calls else ():
            if entry.kind == "step alone" and entry.times >= FEWEST_EMPTY:
                steps, all_of = count(entry.times, "step"), count(entry.parameters, "parameter")
                yield _unused(facts, _ALONE, (entry.origin,), steps=steps, parameters=all_of)
        found = unstepped(facts)
        if found is not None:
            zeroed = facts.at(facts.seen.zeroed)
            more = [f"zero_grad is called between them{zeroed}"] if zeroed else []
            words = _ZEROED if found.zeroed else _UNSTEPPED
            last = (step.origin for step in facts.seen.steps[-1:])
            yield _unused(facts, words, last, more, calls=count(found.calls, "backward call"))


class _Words(NamedTuple):
    """What is said of one, with its expressions, places and numbers filled in."""

    message: str
    evidence: str
    remedy: str
    why: str = (
        "A step changes parameters by what is in .grad at that moment; where that is None or 0, "
        "nothing is learned."
    )


_ORDER = "the order is `optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`."
_UNSTEPPED = _Words(
    "No optimizer has used the gradients: there was no step.",
    "{calls} without any step: no parameter has changed",
    "Call `optimizer.step()` after backward, before the gradients are zeroed; to add up the "
    "gradients of several batches, zero them only after the step.",
)
# A step that finds none of them, as they were dropped by hand, was one.
_ZEROED = _UNSTEPPED._replace(
    message="The gradients are zeroed, and no optimizer has used them.",
    evidence="{calls}, and no parameter has changed",
)
_ALONE = _Words(
    "The optimizer steps, and nothing has computed a gradient: backward is never called.",
    "{steps}, and .grad of all {parameters} was None",
    "Call `loss.backward()` before `optimizer.step()`.",
)
_TOO_SOON = _Words(
    "{step} comes before the backward call whose gradients it needs.",
    "{steps} without any gradient, between a forward pass and its backward{dropped}",
    f"Step after backward; {_ORDER}",
)
_BETWEEN = _Words(
    "{zero} drops the gradients between backward and the step that needs them.",
    "{steps}{at} without any gradient, after a backward call that brought some",
    f"Between backward and step nothing may zero the gradients; {_ORDER}",
)


def _unused(
    facts: Facts,
    words: _Words,
    places: Iterable[int | None],
    more: Iterable[str] = (),
    **named: str | int,
) -> FindingDraft:
    """A finding at the first of these places that is known."""
    return facts.warning(
        words.message.format(**named),
        location=next(filter(None, map(facts.location, places)), None),
        evidence=(words.evidence.format(**named), *more),
        why=words.why,
        remedy=words.remedy,
    )


def _empty(facts: Facts, entry: MistakenCall) -> FindingDraft:
    """A step without what a backward call had brought, or will bring."""
    words = _TOO_SOON if entry.too_soon else _BETWEEN
    zeroed = facts.at(entry.other)
    return _unused(
        facts,
        words,
        (None if words is _TOO_SOON else entry.other, entry.origin),
        step=facts.expression(entry.origin) or "The step",
        zero=facts.expression(entry.other) or "Something",
        at=facts.at(entry.origin),
        dropped=f"; what was there had been dropped{zeroed}" if zeroed else "",
        steps=count(entry.times, "step"),
    )
