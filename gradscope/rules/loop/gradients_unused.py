"""GS505 gradients-unused

Gradients are dropped before a step has used them, or there are none, as backward is never called.

## How it is recognised

- A step finds no gradient twice, or only zeros, though backward had brought some. The finding is
  at the `zero_grad` that drops them; at the step, where that comes before backward.
- All gradients are dropped three times in a row, or the program ends after two backward calls,
  and nothing has changed a leaf.
- Each step uses the gradients of one backward call, and those of the calls before it, at least one
  of them from the same line through the same graph, are dropped. A program that reads or clips
  them, or has hooks, may have used them.
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

from gradscope.model.observations import MistakeKind, MistakenCall, Step
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.optimizers import Unstepped, dropped_between, unstepped
from gradscope.rules.questions.wording import FEWEST, MistakeRule, MistakeWords
from gradscope.words import count

_WHY = (
    "A step changes parameters by what is in .grad at that moment; where that is None or 0, "
    "nothing is learned."
)
_ORDER = "the order is `optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`."
_WORDS: dict[MistakeKind, MistakeWords] = {
    "dropped": MistakeWords(
        "{this} drops the gradients between backward and the step that needs them.",
        "{times} {beside} found no gradient, after a backward call that brought some",
        _WHY,
        f"Between backward and step nothing may zero the gradients; {_ORDER}",
        "the step",
        FEWEST,
    ),
    "step too soon": MistakeWords(
        "{this} comes before the backward call whose gradients it needs.",
        "{times} without any gradient, between a forward pass and its backward; what was there had "
        "been dropped by {beside}",
        _WHY,
        f"Step after backward; {_ORDER}",
        "the program",
        FEWEST,
    ),
    "step alone": MistakeWords(
        "The optimizer steps, and nothing has computed a gradient: backward is never called.",
        "{times}, and .grad of all {parameters} was None",
        _WHY,
        "Call `loss.backward()` before `optimizer.step()`.",
        fewest=FEWEST,
    ),
}


class GradientsUnused(MistakeRule):
    code = "GS505"
    name = "gradients-unused"
    words = _WORDS

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        yield from super().look(facts)
        found = unstepped(facts)
        if found is not None:
            yield _unstepped(facts, found)
        lost = dropped_between(facts)
        if lost:
            yield _dropped_between(facts, lost)

    def is_explained(self, facts: Facts, entry: MistakenCall) -> bool:
        return entry.kind == "step alone" and bool(facts.seen.calls)


def _unstepped(facts: Facts, found: Unstepped) -> FindingDraft:
    """A finding about a program that has made no step."""
    calls, zeroed = count(found.calls, "backward call"), facts.at(facts.seen.zeroed)
    # A step that finds none of them, as they were dropped by hand, was one.
    return facts.warning(
        "The gradients are zeroed, and no optimizer has used them."
        if found.zeroed
        else "No optimizer has used the gradients: there was no step.",
        location=facts.location(facts.seen.steps[-1].origin) if facts.seen.steps else None,
        evidence=(
            f"{calls}, and no parameter has changed"
            if found.zeroed
            else f"{calls} without any step: no parameter has changed",
            *([f"zero_grad is called between them{zeroed}"] if zeroed else []),
        ),
        why=_WHY,
        remedy="Call `optimizer.step()` after backward, before the gradients are zeroed; to add up "
        "the gradients of several batches, zero them only after the step.",
    )


def _dropped_between(facts: Facts, steps: list[list[Step]]) -> FindingDraft:
    """A finding about gradients that should be added up, of which the last ones are used alone."""
    lost = [call for calls in steps for call in calls[1:]]
    made = count(sum(map(len, steps)), "backward call")
    zeroed = facts.at(lost[0].zeroed)
    return facts.warning(
        "Each step uses the gradients of the last backward call alone: those of the calls before "
        "it are dropped.",
        location=facts.location(lost[0].zeroed) or facts.location(lost[0].origin),
        evidence=(
            f"of {made} for {count(len(steps), 'step')} the gradients of {len(lost):,} were gone "
            "before the next call, and no step had used them",
            *([f"zero_grad is called between them{zeroed}"] if zeroed else []),
        ),
        why="A step uses what is in .grad at that moment. Gradients of several batches add up "
        "there only as long as nothing zeroes them between the backward calls.",
        remedy="Zero the gradients once for every step, before the first of its backward calls.",
        step=lost[0].number,
    )
