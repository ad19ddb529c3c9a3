"""GS303 history-cut

The history is cut on the only way from a parameter to the loss: by `detach`, `.data`, `.item()`,
`float()`, `numpy()`, `torch.tensor(...)`, `Variable(...)`, `copy.deepcopy(...)`, `argmax`, the
indices of `topk` or `sort`, a comparison, a cast to whole numbers (`.long()`), a value that is
written into `out.data`; where gradients are switched off; or by a reentrant checkpoint.

## How it is recognised

The inputs of a call depend on parameters that an optimizer holds (or a module, where there is
no optimizer), its result has no history, and no watched backward call reached them. Of several
such calls the one is named whose result backward starts from, else one whose result comes into
a graph; a cut in a loop is one finding. A custom Function cuts off what its forward uses and is
not given as an argument. `copy.deepcopy` of a module does where backward reached only the copy.

Of `no_grad` and `set_grad_enabled(False)` the line is the one that switched gradients off: the
`with`, or the call, also that of a decorated function; of `inference_mode` the first call that ran
there. All that ran there is one finding. Where a function of torch does so by itself, as
`dist.sample()` does and `rsample()` does not, that is named. A pass of which nothing comes into a
graph, such as an evaluation, is no reason for a parameter that was also used with history; nor is a
number that is printed, or an accuracy, where another loss is learned from.

A checkpoint with `use_reentrant=True` calls its function a second time in backward. Parameters
that the first call used, and that get no gradient though backward comes to the checkpoint, had no
part in the second: an attribute that the function reads was changed in between, or it cuts.

Also told is what is made of the result and added to the loss, though other terms reach the
parameters. It is a warning where a tensor was copied or made a plain number (`torch.tensor`,
`.item()`), or where the next step changes what the term was computed from, as in a
gradient penalty without `create_graph`. It is information where it may be meant: a single
number that is detached for its value. What only keeps the value of its own term is left alone.

So is a term, which the loss is taken apart into through sums, means and constant factors, that
gives no gradient to the parameters of the optimizers that step next, while some of them lie behind
a cut in it, and other terms of the same loss, or of none, do reach them: the step of the
discriminator is no such, nor are targets, teachers, baselines and advantages, where each term
reaches what the step changes. For `sample()` of a distribution that has `rsample()` it is enough
that the term gives nothing to what the value was drawn from. Steps that are made by hand, without
an optimizer, are not known.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, second = nn.Linear(4, 4), nn.Linear(4, 4)
 optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
 for _ in range(3):
     hidden = torch.tanh(first(torch.randn(8, 4)))
-    loss = second(hidden.detach()).pow(2).mean()
+    loss = second(hidden).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where they are to stay as they are; then leave them out of the optimizer. Where the program has no
optimizer, a value that never comes back into a graph, as one that is compared or printed, is
information.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.model.observations import Cut, LostTerm, TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import at_place, name_of, place_of, why_and_remedy
from gradscope.rules.questions.missing import find_missing, of_cut
from gradscope.rules.questions.optimizers import modules
from gradscope.rules.rule import Rule
from gradscope.words import first_line, listed


class HistoryCut(Rule):
    code = "GS303"
    name = "history-cut"
    before = {"GS403": "failure", "GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for cuts, learners in _cut_off(facts):
            found = of_cut(facts, cuts[0], learners)
            inside = _ran_inside(facts, cuts)
            yield msgspec.structs.replace(found, evidence=(*found.evidence, *inside))
        yield from _terms(facts)
        yield from _inference_tensor(facts)


def _cut_off(facts: Facts) -> Iterable[tuple[list[Cut], list[TrackedParameter]]]:
    """The cuts with the learners behind them; one place is one cause, and so is inference mode, of
    which nobody knows where it was entered."""
    places: dict[object, tuple[list[Cut], list[TrackedParameter]]] = {}
    by_cut = facts.once(find_missing).by_cut
    for cut in facts.seen.cuts:
        if cut in by_cut:
            is_unknown = cut.reason == "inference_mode"
            cause = cut.reason if is_unknown else place_of(cut)
            cuts, behind = places.setdefault(cause, ([], []))
            cuts.append(cut)
            behind.extend(by_cut[cut])
    return places.values()


_MODES = ("no_grad", "inference_mode")


def _ran_inside(facts: Facts, cuts: list[Cut]) -> list[str]:
    """The calls that needed history, where another line has switched gradients off."""
    if cuts[0].reason not in _MODES:
        return []
    calls = dict.fromkeys(cut.origin for cut in cuts if cut.origin != place_of(cuts[0]))
    told = [f"{facts.expression(one)}{facts.at(one)}" for one in calls if facts.at(one)]
    # Where inference mode was entered nobody knows, nor whether that was once.
    ran = "in inference mode" if cuts[0].reason == "inference_mode" else "there"
    return [f"ran {ran}, and needed history: {listed(told)}"] if told else []


def _inference_tensor(facts: Facts) -> Iterable[FindingDraft]:
    failure = facts.seen.failure
    if failure is None or "nference tensor" not in failure.message:
        return
    cut = next((one for one in facts.seen.cuts if one.reason == "inference_mode"), None)
    if cut not in facts.once(find_missing).by_cut:
        yield facts.finding(
            "error",
            "A tensor that was made under inference_mode goes into a graph.",
            location=facts.location(failure.origin if cut is None else place_of(cut)),
            evidence=first_line(failure.message),
            why="Such tensors can never take part in a gradient.",
            remedy="Make it under torch.no_grad instead, or clone it before it is used.",
            fails=True,
        )


_OFTEN_MEANT = ("detach", "detach_", "data", "grad")
"""What also takes a term out of the gradient on purpose."""

_STARVED = "the next step changes {}: {} was computed from them, and gives them no gradient"


def _terms(facts: Facts) -> Iterable[FindingDraft]:
    """Terms of a loss that are constants, though they were computed from parameters; or that move
    nothing which the next step changes."""
    told = set(map(place_of, facts.once(find_missing).by_cut))
    starved = {lost.cut: lost for lost in facts.seen.lost_terms if lost.origin is None}
    for cut in facts.seen.cuts:
        if not cut.summand or not cut.leaves or place_of(cut) in told:
            continue
        told.add(place_of(cut))
        often = cut.reason != "function" or cut.function in _OFTEN_MEANT
        # A single number is detached on purpose, for its value; a loss made of what was detached
        # moves nothing, also where the step after it changes what it was computed from.
        meant = often and (cut not in starved or (cut.scalar and cut.function != "grad"))
        found, whom = of_cut(facts, cut, []), ""
        seen = f"its inputs depend on {listed(cut.leaves)}; what is added does not"
        if lost := starved.get(cut):
            # Others behind it may get theirs another way, or in a call of their own.
            found = msgspec.structs.replace(found, subject=modules(facts, lost.leaves))
            whom = " of what the next step changes"
            seen = _STARVED.format(listed(lost.leaves), "what is added")
        yield msgspec.structs.replace(
            found,
            severity="information" if meant else "warning",
            message=f"{at_place(facts, cut)}{name_of(cut)} cuts a term of the loss off: it adds to "
            f"the loss and nothing to the gradient{whom}.",
            evidence=(seen,),
            fails=False,
            step=lost.call if lost else 0,
        )
    for lost in facts.seen.lost_terms:
        if lost.origin is not None and place_of(lost.cut) not in told:
            told.add(place_of(lost.cut))
            yield _lost(facts, lost)


def _lost(facts: Facts, lost: LostTerm) -> FindingDraft:
    cut, (why, remedy) = lost.cut, why_and_remedy(lost.cut)
    moves = (
        "what it was drawn from learns nothing from this term of the loss."
        if cut.twin
        else "this term of the loss moves nothing that the next step changes."
    )
    return facts.warning(
        f"{at_place(facts, cut)}{name_of(cut)} takes {facts.expression(lost.origin)} out of the "
        f"gradient: {moves}",
        location=facts.location(place_of(cut)),
        subject=modules(facts, lost.leaves),
        evidence=_STARVED.format(listed(lost.leaves), "the term"),
        why=why,
        remedy=remedy,
        step=lost.call,
    )
