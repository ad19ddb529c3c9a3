"""GS306 non-leaf-parameter

A tensor that is meant to be learned is the result of an operation, so its `.grad` stays None.

## How it is recognised

It carries history, and the program reads its `.grad` or hands it to an optimizer; or asks
`torch.autograd.grad` for its gradient though the result was not computed from it, as of a view
made anew, and torch raises.
Leaves are left alone.

## A program that has it, healed

```diff
 import torch

-w = torch.randn(3, requires_grad=True) * 0.1
+w = (torch.randn(3) * 0.1).requires_grad_()
 loss = (w - 1).pow(2).sum()
 loss.backward()
 print(w.grad)
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import listed


class NonLeafParameter(Rule):
    code = "GS306"
    name = "non-leaf-parameter"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # Those made at one line, as `x, t = xt[:, 0:1], xt[:, 1:2]`, have one cause.
        lines: dict[tuple[str, int] | None, list[TrackedParameter]] = {}
        for learner in (one for one in facts.seen.learners if one.history):
            if learner.wanted:
                at = facts.location(learner.made)
                lines.setdefault((at.file, at.line) if at else None, []).append(learner)
            else:
                yield _not_a_leaf(facts, learner)
        for same in lines.values():
            yield _not_in_graph(facts, same)


def _not_a_leaf(facts: Facts, learner: TrackedParameter) -> FindingDraft:
    return facts.warning(
        f"{learner.name} is not a leaf: it is the result of {learner.history}, so its .grad stays "
        "None.",
        location=facts.location(learner.made),
        subject=learner.name,
        evidence=f"made by {learner.history} from a tensor that requires grad",
        why="Gradients are kept in leaves only, and in results that were told to keep theirs.",
        remedy="To learn it, do the operation first and then ask for gradients: "
        "`w = (torch.randn(n) * 0.1).requires_grad_()`, `x = x.to(device).requires_grad_()`. "
        f"To look at its gradient, call `{learner.name}.retain_grad()` before backward.",
    )


def _not_in_graph(facts: Facts, learners: list[TrackedParameter]) -> FindingDraft:
    learner = learners[0]
    places = dict.fromkeys(facts.expression(one.made) or one.name for one in learners)
    return facts.finding(
        "error",
        f"The gradient of {listed(filter(None, places)) or 'a tensor'} is asked for, but the "
        "result was not computed from it.",
        location=facts.location(learner.made),
        subject=listed(one.name for one in learners if one.name),
        evidence=f"{learner.history} made it, and nothing in the graph took it",
        why="An index or a view gives a new tensor each time; only the tensors that went into the "
        "result are in its graph.",
        remedy="Ask for the gradient of the tensor that was used, and take the part of that; or "
        "make the part first and compute the result from it.",
        fails=True,
    )
