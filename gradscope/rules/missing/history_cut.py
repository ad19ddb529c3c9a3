"""GS303 history-cut

A call cuts the history on the only way from a parameter to the loss: `detach`, `.data`,
`.item()`, `float()`, `numpy()`, `torch.tensor(...)`, `copy.deepcopy(...)`, `argmax`, a
comparison, a cast to whole numbers (`.long()`).

## How it is recognised

The inputs of a call depend on parameters that an optimizer holds (or a module, where there is
no optimizer), its result has no history, and no watched backward call reached them. Of several
such calls the one is named whose result backward starts from, else one whose result comes into
a graph; a cut in a loop is one finding. A custom Function cuts off what its forward uses and is
not given as an argument. `copy.deepcopy` of a module does where backward reached only the copy.

Also told is what is made of the result and added to the loss, though other terms reach the
parameters. It is a warning where a tensor was copied or made a plain number (`torch.tensor`,
`.item()`), or where the next step changes what the term was computed from, as in a
gradient penalty without `create_graph`. It is information where it may be meant: a single
number that is detached for its value. What only keeps the value of its own term is left alone.

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
-        return self.second(self.first(x).detach())
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

Where they are to stay as they are; then leave them out of the optimizer. `gradscope doctor
--ignore GS303` leaves it out.
Where the program has no optimizer, a value that never comes back into a graph, as one that is
compared or printed, is information.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import at_place, constant_losses, name_of, place_of
from gradscope.rules.questions.missing import CutOffRule, find_missing, of_cut
from gradscope.words import listed


class HistoryCut(CutOffRule):
    code = "GS303"
    name = "history-cut"
    reasons = ("function",)

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        yield from super().look(facts)
        yield from _constant_terms(facts)


_OFTEN_MEANT = ("detach", "detach_", "data", "grad")
"""What also takes a term out of the gradient on purpose."""


def _constant_terms(facts: Facts) -> Iterable[FindingDraft]:
    """Terms of a loss that are constants, though they were computed from parameters."""
    told = set(map(place_of, facts.once(find_missing).by_cut))
    # Of what a loss of constants was made of, that loss tells.
    constants = constant_losses(facts)
    told |= {place_of(one) for cut in constants for one in cut.sources}
    starved = {lost.cut for lost in facts.seen.lost_terms if lost.origin is None}
    for cut in facts.seen.cuts:
        if not cut.summand or not cut.leaves or place_of(cut) in told:
            continue
        told.add(place_of(cut))
        often = cut.reason != "function" or cut.function in _OFTEN_MEANT
        # A single number is detached on purpose, for its value; a loss made of what was detached
        # moves nothing, also where the step after it changes what it was computed from.
        meant = often and (cut not in starved or (cut.scalar and cut.function != "grad"))
        yield msgspec.structs.replace(
            of_cut(facts, cut, []),
            severity="information" if meant else "warning",
            message=f"{at_place(facts, cut)}{name_of(cut)} cuts a term of the loss off: it adds to "
            "the loss and nothing to the gradient.",
            evidence=(f"its inputs depend on {listed(cut.leaves)}; what is added does not",),
            fails=False,
        )
