"""GS512 normalised-twice

A softmax or sigmoid comes before a loss that begins with one (`cross_entropy`,
`binary_cross_entropy_with_logits`).

## How it is recognised

What `cross_entropy` or `binary_cross_entropy_with_logits` is given is the result of a softmax
or a sigmoid, or of a view or an index of it. Scores that are scaled in between, as by a
temperature, are left out, and so are logarithms, which do not lie between 0 and 1: a log_softmax
before `cross_entropy` changes nothing.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
-model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1))
+model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     optimizer.zero_grad()
     scores = model(torch.randn(8, 4))
     nn.functional.cross_entropy(scores, torch.randint(0, 3, (8,))).backward()
     optimizer.step()
```

## When to ignore it

Where scores between 0 and 1 are meant to be the logits.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.ops import MOVING
from gradscope.rules.rule import Rule


class NormalisedTwice(Rule):
    code = "GS512"
    name = "normalised-twice"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        places: set[int | None] = set()
        for node in facts.graph.nodes:
            kind = _kind_of_loss(facts, node.id)
            source = _source(facts, node.id) if kind else None
            origin = None if source is None else facts.graph.nodes[source].origin
            if source is not None and origin not in places and origin != node.origin:
                places.add(origin)
                yield _at_loss(facts, source, node.id, kind)


_SQUASHING = ("Softmax", "Sigmoid")

_SHAPING = MOVING | {"ReshapeAlias", "Alias", "AsStrided", "ToCopy"}
"""What only moves numbers about."""


def _source(facts: Facts, node: int) -> int | None:
    """The softmax or sigmoid whose result a node is given, whatever only moves it about."""
    while below := list(facts.below(node)):
        if facts.op(below[0]) in _SQUASHING:
            return below[0]
        node = below[0]
        # What is joined with others is but a part of what the loss is given.
        if facts.op(node) not in _SHAPING or len(list(facts.below(node))) > 1:
            return None
    return None


def _kind_of_loss(facts: Facts, node: int) -> str:
    """What a loss begins with of which this node is the first: a softmax or a sigmoid."""
    if facts.op(node) == "BinaryCrossEntropyWithLogits":
        return "sigmoid"
    # cross_entropy is made of several nodes; else it is a log_softmax of the program's own.
    origin = facts.graph.nodes[node].origin
    is_loss = any(facts.graph.nodes[one].origin == origin for one in facts.above(node))
    is_cross = facts.op(node) == "LogSoftmax" and origin is not None and is_loss
    return "softmax" if is_cross else ""


def _at_loss(facts: Facts, source: int, node: int, kind: str) -> FindingDraft:
    """A loss that makes probabilities of probabilities."""
    op = facts.op(source)
    return facts.warning(
        f"{facts.words(node)} begins with a {kind}, and is given the result of a {op.lower()}.",
        source,
        evidence=f"{op} goes into the loss{facts.at(facts.graph.nodes[node].origin)}",
        why="The scores are squeezed into 0 to 1 before they are made probabilities: the loss "
        "cannot come near zero, and the gradient is small even where the answer is wrong.",
        remedy="Give the loss the scores as they are (logits), and use probabilities outside of "
        "the loss only; nll_loss takes log-probabilities."
        if kind == "softmax"
        else "Give the loss the scores as they are (logits); binary_cross_entropy takes "
        "probabilities.",
    )
