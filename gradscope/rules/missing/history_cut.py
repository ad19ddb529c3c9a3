"""GS303 history-cut

A call cuts the history on the only way from a parameter to the loss: `detach`, `.data`,
`.item()`, `float()`, `numpy()`, `torch.tensor(...)`, `copy.deepcopy(...)`, `argmax`, a
comparison, a cast to whole numbers (`.long()`).

## How it is recognised

Parameters that an optimizer holds (or a module, where there is no optimizer) lie behind its
inputs, its result has no history, and no watched backward call reached them. Also what is made
from its result and added to the loss as it is, as a single number or before the mean over the
samples, though other terms reach the parameters: a warning where a tensor was copied
(`torch.tensor`) or made a plain number (`.item()`, wherever the program keeps that number;
`.numpy()`, where the statement that assigns the number reads the array), or where the step that
follows changes what the term was computed from (a gradient penalty without `create_graph`, a
loss of detached features, the score of a detached critic); information where it may be meant (a
single number that is detached for its value). What only keeps a value, made of the very term
that it is added to or taken from, is left alone. A custom Function cuts off what its forward
uses and is not given as an argument. A cut in a loop, after each of many blocks, is one finding
for all of them. Where several calls cut off one parameter, the finding is at the one whose
result backward starts from (`loss.detach().requires_grad_()`), else at one whose result comes
into a graph. A parameter that is also used with history was not lost under `no_grad`, if
another call cuts it off. Zeros that the program puts into `.grad` beside what backward has
brought are no gradient.

`copy.deepcopy` of a module is such a cut where backward reached the copy, and no call the
original, though an optimizer holds that. And a step that is written through `.data` or under
`no_grad` cuts off the graph of its gradient, where `torch.autograd.grad` was asked for that
(`create_graph=True`) and nothing ever goes back through it.

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

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import missing
from gradscope.rules.rule import Rule


class HistoryCut(Rule):
    code = "GS303"
    name = "history-cut"
    before = {
        "GS306": "failure",
        "GS310": "place",
        "GS311": "place",
        "GS409": "failure",
        "GS317": "place",
        "GS410": "failure",
        "GS413": "failure",
    }

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return missing.history_cut(facts)
