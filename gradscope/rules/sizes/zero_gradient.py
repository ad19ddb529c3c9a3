"""GS205 zero-gradient

From one operation on, the gradient is exactly zero.

## How it is recognised

An operation receives a gradient, sends nothing but zeros, and some leaf gets nothing else: a
step function, a clamp that all elements lie beyond, a softmax over one element,
nearest-neighbour sampling, a product of zeros. Or, in float16, what it received is on average
below 6e-5 an element (for a mean: below 6e-8 after the division). Or, whatever the operation, all
leaves get zeros though the loss is not 0.

Not told are gradients that cancel, exactly or up to rounding, as below a normalisation that
leaves nothing to learn: of one number, or of a sum over what a softmax, a batch or a layer norm
gives.

A margin that every sample keeps is left alone, as is a loss of exactly 0, and what is zero where
the loss is NaN.

## A program that has it, healed

```diff
 import torch

 w = torch.tensor([0.3, 1.7], requires_grad=True)
-loss = (torch.round(w) - 1).pow(2).sum() + 0.5
+q = w + (torch.round(w) - w).detach()
+loss = (q - 1).pow(2).sum() + 0.5
 loss.backward()
```

## When to ignore it

Where no gradient is wanted; then `detach()` says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.norms import size_of
from gradscope.rules.questions.stops import Stop, silenced, stops
from gradscope.rules.rule import Rule
from gradscope.words import count, listed


class ZeroGradient(Rule):
    code = "GS205"
    name = "zero-gradient"
    before = {"GS204": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        known = stops(facts)
        for nodes in facts.by_place(sorted(known)).values():
            silencing = next((node for node in nodes if silenced(facts, node)), None)
            if silencing is not None:
                yield _stop(facts, silencing, known[silencing], nodes)


def _stop(facts: Facts, node: int, stop: Stop, nodes: list[int]) -> FindingDraft:
    names = silenced(facts, node)
    return facts.warning(
        f"The gradient becomes exactly zero at {facts.words(node)}.",
        node,
        evidence=(
            f"received {short(facts.received(node)[0].norm)} (2-norm), "
            f"sent {short(size_of(facts.sent(node)[0][1]))}",
            f"nothing but zeros for {count(len(names), 'leaf')}: {listed(names)}",
        ),
        why=stop.why,
        remedy=stop.remedy,
        nodes=nodes,
        of_values=not stop.is_always,
    )
