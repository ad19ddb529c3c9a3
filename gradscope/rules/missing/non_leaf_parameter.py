"""GS306 non-leaf-parameter

A tensor that is meant to be learned is the result of an operation, so its `.grad` stays None.

## How it is recognised

It carries history, and the program reads its `.grad`; or asks `torch.autograd.grad` for the
gradient of a view that the result was not computed from. Where that call raises nothing
(`allow_unused=True`) it gives None, or zeros, and the finding is a warning: if the tensor only
takes, moves or joins elements (`xt[:, 0:1]`, `view`, `cat`) of tensors that the result was
computed from, and each of those went into it as a whole. Other tensors without a way to the
result are left alone, and leaves as well, for the program has said that it expects them; so is
what torch itself has made, as `jacobian` does for the function it is given.

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
        made = [one for one in facts.seen.learners if one.history]
        for learner in made:
            if not _is_asked_for(learner):
                yield _not_a_leaf(facts, learner)
        # Those made at one line, as `x, t = xt[:, 0:1], xt[:, 1:2]`, have one cause.
        lines: dict[tuple[str, int] | None, list[TrackedParameter]] = {}
        for learner in made:
            if _is_asked_for(learner):
                at = facts.location(learner.made)
                lines.setdefault((at.file, at.line) if at else None, []).append(learner)
        for same in lines.values():
            yield _not_in_graph(facts, same)


def _is_asked_for(learner: TrackedParameter) -> bool:
    """Whether a call of torch.autograd.grad asks for its gradient, and finds none."""
    return learner.wanted or learner.asked is not None


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
    # What made the call fail comes first.
    learner = min(learners, key=lambda one: not one.wanted)
    places = dict.fromkeys(facts.expression(one.made) or one.name for one in learners)
    asked = [facts.location(one.asked) for one in learners if not one.wanted]
    calls = listed(str(at) for at in asked if at is not None)
    return facts.finding(
        "error" if learner.wanted else "warning",
        f"The gradient of {listed(filter(None, places)) or 'a tensor'} is asked for, but the "
        "result was not computed from it.",
        location=facts.location(learner.made),
        subject=listed(one.name for one in learners if one.name),
        evidence=(
            f"{learner.history} made it, and nothing in the graph took it",
            *([f"torch.autograd.grad gave no gradient of it at {calls}"] if calls else []),
        ),
        why="An index or a view gives a new tensor each time; only the tensors that went into the "
        "result are in its graph.",
        remedy="Ask for the gradient of the tensor that was used, and take the part of that; or "
        "make the part first and compute the result from it.",
        fails=learner.wanted,
    )
