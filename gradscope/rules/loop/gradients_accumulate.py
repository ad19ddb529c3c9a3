"""GS501 gradients-accumulate

Nothing zeroes the gradients between two steps, or between two calls of the function given to a
step, so that the later one goes along earlier gradients as well.

## How it is recognised

A parameter was changed with a gradient that still held what an earlier change had used.
Accumulating over micro-batches before one step is not that, nor is a gradient that is replaced
before the step, or changed after it (a momentum by hand), nor what another loss adds in between. Of
a parameter in an optimizer only steps count as changes; of any other, every edit in place if the
program reads the gradient.

The finding is at the backward call that adds to the old gradient. Where the function that is
given to a step makes that call (LBFGS calls it again and again), it is at the `zero_grad` that
stands outside of it.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
+    optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Never without a reason of your own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradscope.model.observations import Step
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.rule import Rule
from gradscope.words import count

MOST_NORMS = 8
"""Steps whose gradient norm is written out."""


class GradientsAccumulate(Rule):
    code = "GS501"
    name = "gradients-accumulate"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        piled = [step for step in facts.seen.steps if step.reused]
        if not piled:
            return
        step = piled[0]
        better = facts.seen.zeroed if step.in_closure else None
        yield facts.warning(
            "Gradients pile up: the function that the step calls again and again does not zero "
            "them."
            if step.in_closure
            else "Gradients pile up: nothing zeroes them between two steps.",
            location=facts.location(better) or facts.location(step.origin),
            evidence=(
                f"{count(step.reused, 'parameter')} updated with a gradient that still held the "
                f"one of the update before; seen at {count(len(piled), 'backward call')}",
                *_between(facts, step),
                *_norms([one for one in facts.seen.steps if one.origin == step.origin]),
            ),
            why="backward adds to .grad. Such a step goes along the new gradient and what is left "
            "of earlier ones.",
            remedy="Call `optimizer.zero_grad()` at the beginning of that function."
            if step.in_closure
            else "Call `optimizer.zero_grad()` once for every `optimizer.step()`."
            if facts.seen.optimizers
            else "Take the gradient away after each update: `parameter.grad = None`.",
            step=step.number,
        )


def _between(facts: Facts, step: Step) -> Iterable[str]:
    """What was called between the two steps, and what was not."""
    backward = facts.location(step.origin)
    if backward and step.in_closure:
        yield f"backward is called inside of the step, at {backward}"
    if zeroed := facts.at(facts.seen.zeroed):
        where = "outside of it" if step.in_closure else "and zeroed none of these between the two"
        yield f"zero_grad is called{zeroed}, {where}"


def _norms(steps: Sequence[Step]) -> Iterable[str]:
    norms = [short(step.norm) for step in steps if step.norm is not None]
    if len(norms) > 1:
        more = f" and {len(norms) - MOST_NORMS:,} more" * (len(norms) > MOST_NORMS)
        yield f"‖g‖ of the new gradients: {', '.join(norms[:MOST_NORMS])}{more}"
