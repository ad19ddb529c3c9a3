"""GS307 not-in-optimizer

A parameter gets gradients, but no optimizer holds it.

## How it is recognised

An optimizer holds parameters of modules, but not this one, and backward reached it; or not this
tensor, which two calls or more brought gradients that nothing reads. That is information, for it
may be meant. It is a warning where something speaks against that:

- it is in a plain list, dict or attribute, or an `nn.Parameter` that belongs to no module;
- it was made, or let learn, after the optimizers, and the program does not change it by hand: where
  a single one of three backward calls or more reached it, as it is made anew for each, at the line
  that makes it;
- an optimizer holds what no backward call has reached, or a copy of it;
- two optimizers hold the same parameters, and none of this module;
- it weighs what layers make that the optimizer holds, and nothing else, also in the loss; it was
  not loaded and is not in eval mode; and at most a fifth of the parameters are left out, or it was
  drawn at random and is of a module beside theirs. Such a module may also give them what it makes.

Then the finding is at the line that makes the optimizer, or that calls what makes it, and the
evidence names the layer. What is in a plain list is told where it is made. One list, line or
reason is one finding.

That no step changes it is said only of what the program neither writes to nor reads the gradient
of: a target network follows another one, and what is stepped by hand needs no optimizer.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
-        self.rest = [nn.Linear(4, 4)]
+        self.rest = nn.ModuleList([nn.Linear(4, 4)])

     def forward(self, x):
         x = torch.tanh(self.first(x))
         for layer in self.rest:
             x = layer(x)
         return x


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Parts that are meant to stay as they are; `requires_grad_(False)` says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.left_out import Evidence, evidence
from gradscope.rules.questions.optimizers import copies, named, one_cause
from gradscope.rules.rule import Rule
from gradscope.words import count, listed

FEWEST_UNCHANGED = 3
"""Backward calls between which nothing changes what forward uses, before that is a mistake."""


class NotInOptimizer(Rule):
    code = "GS307"
    name = "not-in-optimizer"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        yield from _copied(facts)
        learners = facts.seen.learners
        if not any(item.in_optimizer and item.in_module for item in learners):
            return  # where only an input is learned, the network is meant to stay as it is
        # A Parameter that forward makes anew of what it computed does change, with that.
        remade = [cut.origin for cut in facts.seen.cuts if cut.function == "Parameter"]
        left = [
            item
            for item in learners
            # A tensor of the program's own may be an input that a derivative is taken by.
            if (item.in_module or item.loose or (item.kept and not item.derived))
            and (item.requires_grad and item.reached and item.in_optimizer is False)
            and not any(facts.same_line(item.made, one) for one in remade)
        ]
        among = one_cause(facts, left, lambda item: item.requires_grad, lambda item: item.made)
        told: dict[object, tuple[list[str], list[TrackedParameter], Evidence | None]] = {}
        for number, (paths, group) in enumerate(among):
            is_of_model = any(item.in_module or item.loose for item in group)
            meant = evidence(facts, group) if is_of_model else None
            # What is forgotten in one place, for one reason, is one finding.
            known = told.setdefault(meant or number, ([], [], meant))
            known[0].extend(paths)
            known[1].extend(group)
        for paths, group, meant in told.values():
            yield _left_out(facts, paths, group, meant)


def _left_out(
    facts: Facts, paths: list[str], group: list[TrackedParameter], meant: Evidence | None
) -> FindingDraft:
    """The finding about parameters that are left out together."""
    path, own = listed(paths, 3), facts.location(group[0].made)
    get, it = ("gets", "it") if len(paths) == 1 else ("get", "them")
    loose = group[0].loose and meant is None
    stale = any(
        item.in_optimizer and not item.in_module and not item.reached
        for item in facts.seen.learners
    )
    seen, remedy = [], _REGISTER if loose else _COMPLETE
    if meant:
        places = filter(None, (facts.location(item.made) for item in group))
        made = listed(map(str, places), 3)
        seen, remedy = [meant.words, *([f"made at {made}"] if made else [])], meant.remedy
    elif stale:
        seen = ["the optimizer holds tensors that no backward call has reached"]
    # What the program writes to may be stepped by hand, or follow another network.
    is_written = any(item.written for item in group)
    is_still = all(item.written is False and not (item.handled or item.loaded) for item in group)
    end = f", so no step changes {it}" if is_still else ""
    seen += ["written to between backward calls"] if is_written else []
    return facts.finding(
        "warning" if loose or stale or meant else "information",
        f"{path} {get} gradients, but no optimizer holds {it}{end}.",
        location=(facts.location(meant.place) if meant else None) or own,
        subject=path,
        evidence=(named(group), *seen),
        why="What is kept in a plain list, dict or tensor is unknown to parameters()."
        if loose
        else "The optimizer was made without it, or before it was put in its place.",
        remedy=f"{remedy}{'' if is_still else _BY_ITSELF}",
    )


_REGISTER = (
    "Keep such layers in nn.ModuleList or nn.ModuleDict, and such tensors in an nn.Parameter that "
    "__init__ makes."
)
_COMPLETE = (
    "Make the optimizer after the model is complete, from the parameters of all its parts; or call "
    "requires_grad_(False) on what is meant to stay as it is."
)

_BY_ITSELF = (
    " What the program steps by hand, or what follows another network (a target, an average), may "
    "stay out: then nothing is wrong."
)


def _copied(facts: Facts) -> Iterable[FindingDraft]:
    """An optimizer holds copies of what forward uses, and nothing ever changes that."""
    calls = [step for step in facts.seen.steps if step.accumulates]
    # Copies may well be what is stepped where the numbers are then written back.
    if len(calls) < FEWEST_UNCHANGED or any(step.stepped for step in calls):
        return
    found = copies(facts)
    if found is not None:
        held, used, cut = found
        yield facts.warning(
            "The optimizer holds copies of what forward computes with: no step changes that.",
            location=facts.location(held[0].made) or facts.location(cut.origin),
            evidence=(
                f"{listed((one.name for one in used), 3)}: nothing has changed "
                f"{'it' if len(used) == 1 else 'them'} in {count(len(calls), 'backward call')}",
                f"the optimizer's {count(len(held), 'tensor')} were cut off from them by "
                f"{facts.expression(cut.origin) or cut.function}, and no call took them",
            ),
            why="`detach().clone()` gives a tensor with memory of its own: a step changes that, "
            "and what it was copied from stays as it is.",
            remedy="Give the optimizer the tensors themselves; or write the numbers back after "
            "each step, under torch.no_grad(): `weight.copy_(copy)`.",
        )
