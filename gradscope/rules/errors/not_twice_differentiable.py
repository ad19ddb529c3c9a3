"""GS407 not-twice-differentiable

An operation is differentiated twice that has only a first derivative.

## How it is recognised

torch says so. An operation that it names is told at the line that made it; that a Function is
marked `once_differentiable`, at the backward call.

## A program that has it, healed

```diff
 import torch
-from torch.autograd.function import once_differentiable


 class Square(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x):
         ctx.save_for_backward(x)
         return x * x

     @staticmethod
-    @once_differentiable
     def backward(ctx, grad):
         return grad * 2 * ctx.saved_tensors[0]


 x = torch.randn(3, requires_grad=True)
 w = torch.randn(3, requires_grad=True)
 (slope,) = torch.autograd.grad((w * Square.apply(x)).sum(), x, create_graph=True)
 slope.pow(2).sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gradscope.model.report import Node
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class NotTwiceDifferentiable(Rule):
    code = "GS407"
    name = "not-twice-differentiable"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for failure, finding in read(facts, _TWICE):
            raiser = failure.raiser
            if raiser is not None and raiser.node is not None:
                known = failure.message
                is_first = "is not implemented" in known and "_backward" not in known
                if is_first and not facts.graph.nodes[raiser.node].backward_made:
                    continue  # not even its first derivative is implemented
            guilty = _named(facts, failure.message)
            if guilty is not None:
                finding = msgspec.structs.replace(
                    finding,
                    location=facts.location(guilty.origin) or finding.location,
                    node=facts.reference(guilty.id),
                )
            yield finding


_TWICE = (
    ErrorReading(
        "differentiate twice a function that was marked with @once_differentiable",
        "A custom Function is differentiated twice, and is marked once_differentiable.",
        "The gradient is itself differentiated (create_graph=True), so the backward of the "
        "Function has to be differentiable too.",
        "Take the mark away and write backward with differentiable operations on saved tensors, or "
        "leave this Function out of what the penalty goes through.",
    ),
    ErrorReading(
        "is not implemented",
        "An operation is differentiated twice, and torch has no second derivative for it.",
        "The gradient is itself differentiated (create_graph=True).",
        "Use an operation that torch can differentiate twice, or write this one with basic "
        "operations.",
    ),
    ErrorReading(
        "is not twice differentiable",
        "An operation is differentiated twice that cannot be.",
        "The gradient is itself differentiated (create_graph=True).",
        "Use an operation that torch can differentiate twice.",
    ),
)


def _named(facts: Facts, message: str) -> Node | None:
    """The node of the operation that torch names."""
    name = re.search(r"derivative for '?(?:aten::)?(\w+?)(?:_backward)?'? is not", message)
    wanted = name[1].replace("_", "").lower()[:8] if name else ""
    guilty = (node for node in facts.graph.nodes if node.short_op.lower().startswith(wanted))
    # Cdist, not the CdistBackward that the first derivative left in the graph.
    return min(guilty, key=lambda node: len(node.short_op), default=None) if wanted else None
