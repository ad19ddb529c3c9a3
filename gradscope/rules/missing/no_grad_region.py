"""GS304 no-grad-region

A part of the forward pass runs where gradients are switched off.

## How it is recognised

As for [GS303](GS303.md), with a call that ran under `no_grad`, `inference_mode` or
`set_grad_enabled(False)`. The line named is the one that switched gradients off: the `with`, or
the call, also that of a decorated function; of `inference_mode` the first call that ran there. All
that ran there is one finding; it lists the calls that needed history. Where a function of torch
does so by itself, that is named: `dist.sample()`, which has a twin with history, `rsample()`.

A pass without gradients of which nothing comes into a graph, such as an evaluation, is no
reason for a parameter that other calls used with history. A sample, an index or a comparison
made there is not followed: no gradient could pass it.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
         self.second = nn.Linear(4, 4)

     def forward(self, x):
-        with torch.no_grad():
-            hidden = self.first(x)
-        return self.second(hidden)
+        return self.second(torch.tanh(self.first(x)))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

A frozen part; then leave it out of the optimizer. `gradscope doctor --ignore GS304` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import place_of
from gradscope.rules.questions.missing import CutOffRule, find_missing, of_cut
from gradscope.words import first_line, listed


class NoGradRegion(CutOffRule):
    code = "GS304"
    name = "no-grad-region"
    reasons = ("no_grad", "inference_mode")

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for cuts, learners in self.cut_off(facts):
            found = of_cut(facts, cuts[0], learners)
            # What ran there is told where another line has switched gradients off.
            first = place_of(cuts[0])
            calls = dict.fromkeys(cut.origin for cut in cuts if cut.origin != first)
            told = [f"{facts.expression(one)}{facts.at(one)}" for one in calls if facts.at(one)]
            # Where inference mode was entered nobody knows, nor whether that was once.
            ran = "in inference mode" if cuts[0].reason == "inference_mode" else "there"
            inside = [f"ran {ran}, and needed history: {listed(told)}"] if told else []
            yield msgspec.structs.replace(found, evidence=(*found.evidence, *inside))
        yield from _inference_tensor(facts)


def _inference_tensor(facts: Facts) -> Iterable[FindingDraft]:
    failure = facts.seen.failure
    if failure is None or "nference tensor" not in failure.message:
        return
    cut = next((one for one in facts.seen.cuts if one.reason == "inference_mode"), None)
    if cut in facts.once(find_missing).by_cut:
        return
    origin = failure.origin if cut is None else place_of(cut)
    yield facts.finding(
        "error",
        "A tensor that was made under inference_mode goes into a graph.",
        location=facts.location(origin),
        evidence=first_line(failure.message),
        why="Such tensors can never take part in a gradient.",
        remedy="Make it under torch.no_grad instead, or clone it before it is used.",
        fails=True,
    )
