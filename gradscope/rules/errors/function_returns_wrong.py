"""GS406 function-returns-wrong

The backward of a custom Function returns the wrong number of gradients, a wrong shape, or None
for an input that needs a gradient.

## How it is recognised

torch says so; None is found in the gradients that flowed, where the input is a parameter that
nothing else reached.

## A program that has it, healed

```diff
 import torch


 class Scale(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x, factor):
         ctx.save_for_backward(x, factor)
         return x * factor

     @staticmethod
     def backward(ctx, grad):
         x, factor = ctx.saved_tensors
-        return grad * factor
+        return grad * factor, grad * x


 x = torch.randn(3, requires_grad=True)
 factor = torch.randn(3, requires_grad=True)
 Scale.apply(x, factor).sum().backward()
```

## When to ignore it

None for an input that is meant to get no gradient. `gradscope doctor --ignore GS406` leaves it
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gradscope.model.observations import Failure
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule
from gradscope.words import count, listed


class FunctionReturnsWrong(Rule):
    code = "GS406"
    name = "function-returns-wrong"
    before = {"GS601": "node", "GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for failure, finding in read(facts, _FUNCTIONS):
            yield _at_function(facts, failure, finding)
        yield from _missing_gradients(facts)


_FUNCTIONS = (
    ErrorReading(
        "returned an incorrect number of gradients",
        "A custom Function's backward returns the wrong number of gradients.",
        "It must return one for every argument of forward (ctx not counted), in their order.",
        "Return None for arguments that need no gradient: `return grad * factor, None`.",
    ),
    ErrorReading(
        "returned an invalid gradient",
        "A custom Function's backward returns a gradient of the wrong shape or type.",
        "A gradient has the shape of the argument it is for; where forward broadcast the argument, "
        "the gradient has to be summed back.",
        "Sum over the dimensions that broadcasting added: `grad.sum_to_size(x.shape)`.",
    ),
    ErrorReading(
        "expected Variable or None",
        "A custom Function's backward returns something that is no tensor.",
        "Every returned gradient is a tensor or None.",
        "Return tensors, or None for arguments that need no gradient.",
    ),
)


_NAME = re.compile(
    r"function (\w+?)(?:Backward)? returned an (?:incorrect|invalid)"
    r"|^(\w+?)(?:Backward)?: expected|(\w+?)Backward\S* returned"
)


def _at_function(facts: Facts, failure: Failure, finding: FindingDraft) -> FindingDraft:
    """The finding with the node of the Function that torch named."""
    found = _NAME.search(failure.message)
    name = next(filter(None, found.groups()), "") if found else ""
    for node in facts.graph.nodes:
        if name and node.short_op.removesuffix("Backward") == name:
            return msgspec.structs.replace(
                finding,
                message=f"{name}: {finding.message}",
                location=facts.location(node.origin) or finding.location,
                node=facts.reference(node.id),
                subject=name,
            )
    return msgspec.structs.replace(finding, subject=name or finding.subject)


def _missing_gradients(facts: Facts) -> Iterable[FindingDraft]:
    """None for an input that needs a gradient, which torch takes without a word."""
    learners = {item.leaf for item in facts.seen.learners if item.leaf is not None}
    wanted = {facts.graph.leaves[index].node for index in learners}
    for node in facts.graph.nodes:
        received = any(info.state == "finite" for info in facts.received(node.id))
        if node.kind != "custom" or not received:
            continue
        lost = [t for t, info in facts.sent(node.id) if info.state == "none" and t in wanted]
        lost = [t for t in lost if facts.received(t)[0].state in ("none", "not reached")]
        if lost:
            names = [facts.leaf_names[target] for target in lost]
            yield facts.warning(
                f"{node.short_op} returns None as the gradient of {listed(names)}.",
                node.id,
                subject=listed(names),
                evidence=f"{count(len(names), 'input')} that require grad got None",
                why="None says that this input has no influence on the result; torch believes it.",
                remedy="Return its gradient from backward, in the place of that argument.",
            )
