"""GS403 unfit-root

backward starts from a tensor that nothing with `requires_grad` went into; or from several elements,
and is given no gradient, or one of another shape.

## How it is recognised

torch says so of the call that the program made, and no cut ([GS303](GS303.md)) explains it; of a
call without history in the backward of a custom Function, or in a hook, [GS410](GS410.md) tells.
The shapes are those of its message: to reshape is the remedy only where both have as many elements.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
-(w * 2).backward()
+(w * 2).sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gradscope.model.observations import Failure
from gradscope.rules.facts import Facts, FindingDraft, elements
from gradscope.rules.questions.missing import NO_HISTORY
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule
from gradscope.words import added_up, misfit


class UnfitRoot(Rule):
    code = "GS403"
    name = "unfit-root"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for failure, finding in read(facts, (_NO_HISTORY,)):
            if failure.raiser is None:
                yield finding
        for _, finding in read(facts, (_NONSCALAR,)):
            yield _placed(facts, finding)
        for failure, finding in read(facts, (_SHAPES,)):
            yield _measured(failure, finding)


_NO_HISTORY = ErrorReading(
    NO_HISTORY,
    "backward starts from a tensor without history.",
    "Only what is computed of something that requires grad has one. Tensors made by torch.tensor, "
    "torch.randn and the like do not unless they are told to, nor do frozen parameters.",
    "Make what is to be learned with `requires_grad=True` or as an nn.Parameter, and do not freeze "
    "it; check that no torch.no_grad block is around the forward pass.",
)
_NONSCALAR = ErrorReading(
    "grad can be implicitly created only for scalar outputs",
    "backward starts from a tensor that is no single number, and is given no gradient.",
    "Only for a single number is the gradient to start with clear: 1. Else it depends on what is "
    "to be minimised.",
    "Reduce it first (`loss.mean().backward()`), or say how much each element counts: "
    "`loss.backward(gradient=torch.ones_like(loss))`.",
)
_SHAPES = ErrorReading(
    "Mismatch in shape: grad_output",
    "The gradient handed to backward has another shape than the tensor it is for.",
    "There must be one number for each element of that tensor.",
    "Give it the shape of the tensor.",
)


def _placed(facts: Facts, finding: FindingDraft) -> FindingDraft:
    """With the root, and where that was made."""
    if not facts.backward or not facts.backward.error:
        return finding
    root = facts.graph.nodes[facts.graph.roots[0].node]
    shape = list(root.outputs[0].shape) if root.outputs[0] else "unknown"
    made = facts.location(root.origin)
    where = f", made at {made}" if made else ""
    return msgspec.structs.replace(
        finding,
        node=facts.reference(root.id),
        evidence=(*finding.evidence, f"its shape is {shape}{where}"),
    )


def _measured(failure: Failure, finding: FindingDraft) -> FindingDraft:
    """With both shapes."""
    sizes = re.findall(r"torch\.Size\(\[([\d, ]*)\]\)", failure.message)
    if len(sizes) != 2:
        return finding
    given, root = (list(map(int, re.findall(r"\d+", size))) for size in sizes)
    more = added_up(elements(given), elements(root))
    return msgspec.structs.replace(
        finding,
        evidence=(*finding.evidence, misfit(str(given), str(root))),
        why=f"{finding.why} {more[:1].upper()}{more[1:]}{'.' * bool(more)}".strip(),
        remedy="Give it the shape of the tensor: `gradient.reshape(output.shape)`."
        if elements(given) == elements(root)
        else f"Give one of shape {root}, such as `torch.ones({root})`.",
    )
