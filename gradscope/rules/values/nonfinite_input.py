"""GS105 nonfinite-input

NaN or infinity was there before the first operation: in the data, or in a parameter.

## How it is recognised

A leaf, or an operand without gradient history, that is not finite goes into an operation whose
result reaches the loss. All operands of a call are asked, also of one that consists of many
operations or is a single fused one: a GRU, an attention, a convolution, a batch norm. So are
those that an operation has saved when its backward turns a finite gradient into NaN: a sigmoid
of infinity is finite.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
+x = torch.nan_to_num(x)
 model = nn.Linear(2, 1)
 loss = model(x).pow(2).mean()
 loss.backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Intake
from gradscope.model.plain import in_rows
from gradscope.rules.facts import Facts, FindingDraft, elements
from gradscope.rules.questions.nonfinite import MOST, BackwardSources, ForwardSources
from gradscope.rules.rule import Rule

_WRITTEN = (
    "If it was finite at first, it was written to since, as by a step with a NaN gradient, or with "
    "a learning rate under which it diverged.",
    "Watch the earlier steps as well, and check how it is initialised.",
)
_TAKEN = (
    "It carries no gradient history: the numbers come from the data, or were computed outside the "
    "graph.",
    "Clean the data where it is read: drop or fill such rows (`torch.isfinite(x).all(dim=1)`, "
    "`torch.nan_to_num`).",
)
"""Of what nothing learned went into; the other of a parameter."""


class NonfiniteInput(Rule):
    code = "GS105"
    name = "nonfinite-input"
    before = {"GS203": "values", "GS204": "values", "GS205": "values", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        forward = facts.once(ForwardSources)
        taken, names = forward.taken, {one.name for one in forward.taken}
        for leaf in list(dict.fromkeys(forward.leaves))[:MOST]:
            if facts.leaf_names[leaf] not in names:
                yield _leaf(facts, leaf)
        if not forward.roots:
            # The loss is finite, and backward met what the data held.
            taken = [one for node in facts.once(BackwardSources).born for one in forward.took(node)]
        # What was detached after something else had spoilt it is no source.
        cut = {known.origin for known in facts.seen.cuts} - {None}
        sources = [one for one in taken if one.made not in cut]
        places: dict[object, Intake] = {}
        for intake in sources if sources or forward.born else taken:
            places.setdefault((intake.made, intake.name), intake)
        for intake in list(places.values())[:MOST]:
            yield _operand(facts, intake)


def _leaf(facts: Facts, node: int) -> FindingDraft:
    leaf = next(leaf for leaf in facts.graph.leaves if leaf.node == node)
    name, size = facts.leaf_names[node], elements(leaf.tensor.shape)
    why, remedy = _WRITTEN
    return facts.finding(
        "error",
        f"{name} itself holds NaN or infinity, before any operation of this step.",
        node,
        location=facts.location(leaf.origin),
        subject=name,
        evidence=f"{leaf.tensor.nan:,} NaN, {leaf.tensor.inf:,} infinite of {size:,}",
        why=why,
        remedy=remedy,
    )


def _operand(facts: Facts, intake: Intake) -> FindingDraft:
    name = intake.name or facts.expression(intake.made) or "an operand"
    why, remedy = _WRITTEN if intake.name in facts.leaf_names.values() else _TAKEN
    return facts.finding(
        "error",
        f"{name} holds NaN or infinity before it goes into {facts.words(intake.node)}.",
        intake.node,
        location=facts.location(intake.made),
        subject=intake.name,
        evidence=f"{intake.nan:,} NaN, {intake.inf:,} infinite of {intake.count:,} elements"
        f"{in_rows([intake.rows])}",
        why=why,
        remedy=remedy,
    )
