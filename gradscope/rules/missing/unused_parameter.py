"""GS301 unused-parameter

A parameter takes part in no operation of the forward pass, or what is made from it never reaches
the loss.

## How it is recognised

No watched backward call reached it, and no watched call used it; or one did, and nothing was seen
to cut its history. A warning if an optimizer holds it (of a tensor without a name, as of a copy, at
the line that made the optimizer). Information if another member of the same numbered list is used
(experts, layer drop), or if it is one part of an installed library's model of which other parts
learn (a pooler whose output is not needed). Members of one list of modules are one finding, and so
are parameters that the same line uses.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, second = nn.Linear(4, 4), nn.Linear(4, 4)
 optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
 for _ in range(3):
     hidden = torch.tanh(first(torch.randn(8, 4)))
-    loss = hidden.pow(2).mean()
+    loss = second(hidden).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Parameters that are used only now and then, or whose outputs another part of the training uses.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.missing import (
    failed_without_history,
    find_missing,
    is_measured,
    without_gradient,
)
from gradscope.rules.questions.optimizers import (
    grouped,
    one_cause,
    order_of,
)
from gradscope.rules.rule import Rule


class UnusedParameter(Rule):
    code = "GS301"
    name = "unused-parameter"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        yield from _never_used(facts)
        if not failed_without_history(facts):
            yield from _dropped(facts)


def _never_used(facts: Facts) -> Iterable[FindingDraft]:
    is_some_used = any(one.reached and one.in_optimizer for one in facts.seen.learners)
    for paths, learners in one_cause(facts, facts.once(find_missing).unused):
        first = learners[0]
        # Of a copy, or of a model that is gone, nobody knows more than which optimizer holds it.
        is_gone = first.orphan and not is_some_used
        unknown = is_gone or (first.made is None and not first.in_module)
        if is_gone:
            learners = [msgspec.structs.replace(one, name="") for one in learners]
        # What has no name is counted.
        is_many = len(paths if learners[0].name else learners) > 1
        yield without_gradient(
            facts,
            paths,
            learners,
            order_of(first) if unknown else first.made,
            (
                f"{'were' if is_many else 'was'} never used in the watched steps, so no gradient "
                f"reaches {'them' if is_many else 'it'}.",
                *(_OF_A_COPY if unknown else _FORGOTTEN),
            ),
            may_be_meant=any(_has_sibling(facts, path) for path in paths),
        )


_FORGOTTEN = (
    "It is defined, and no operation takes it: often the call was forgotten, or another layer is "
    "called in its place.",
    "Call it in forward, or delete it. If it is used now and then (a branch, an expert), nothing "
    "is wrong.",
)
_OF_A_COPY = (
    "No operation takes it: often what an optimizer holds is a copy, or the model was made again "
    "after the optimizer.",
    "Make the optimizer from the parameters of the model that is trained, when that is complete.",
)


def _has_sibling(facts: Facts, path: str) -> bool:
    """Whether another member of the same numbered list of modules did get a gradient."""
    head, _, last = path.rpartition(".")
    while head and not last.isdigit():
        head, _, last = head.rpartition(".")
    return last.isdigit() and any(
        learner.reached and learner.name.startswith(f"{head}.") for learner in facts.seen.learners
    )


def _dropped(facts: Facts) -> Iterable[FindingDraft]:
    missing = facts.once(find_missing)
    for _, found in one_cause(facts, missing.idle, place=lambda one: one.used):
        learners = [learner for learner in found if learner.in_optimizer] or found
        first, paths = learners[0], [path for path, _ in grouped(facts, learners)]
        are, get = ("are", "get") if len(paths) > 1 else ("is", "gets")
        use = f"{are} used in {facts.expression(first.used) or 'forward'},"
        is_derived = all(one.derived for one in learners)
        node = missing.inside.get(first.name)
        inside = "" if node is None else f" {facts.way_inside(node)}"
        measured = next(
            (cut for cut in facts.seen.cuts if first.name in cut.leaves and is_measured(cut)), None
        )
        place = None if measured is None else facts.location(measured.origin)
        number = f": `{measured.function}` at {place} makes one of it" if measured and place else ""
        words = (
            f"{use} but no backward call comes back to {'them' if are == 'are' else 'it'}.",
            "As a rule the result is computed and then dropped: overwritten, returned and not "
            "read, or left out of the loss. Or its history ends where no call of torch tells of "
            "it, as in what torch.jit has compiled, a copy by pickle, or in what is computed with "
            f"a plain number{number}.",
            f"Let the loss depend on it, or do not compute it.{inside}",
        )
        if is_derived:
            words = (
                f"{use} of which a derivative is taken, and {get} no gradient.",
                "What only adds a constant to a function, as a last bias does, is in no derivative "
                "of it.",
                "Leave it out of what is asked for, or pass `allow_unused=True`."
                if first.wanted
                else "Nothing, if only derivatives are learned from; else let the loss depend on "
                "the value, too.",
            )
        yield without_gradient(facts, paths, learners, first.used, words, may_be_meant=is_derived)
