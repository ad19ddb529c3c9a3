"""GS517 index-repeated

A sum is assigned by an index that names an element several times, as `out[index] += values`
does, and keeps only one of the values.

## How it is recognised

`out[index]`, by a tensor of whole numbers, is taken, something is added to it or taken from it,
and the result is assigned to `out[index]` again, with history: `+=`, `-=`, or written out. The
index names elements more than once, and what is written to one of them differs. Where all are
equal nothing is lost: a row of a table that is named twice gets its one new value twice. Looked
at are the first three assignments of a line in steps that are looked at in full, to tensors of
up to 1,000,000 elements; what is counted on a GPU is read once in a full look.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 message = nn.Linear(4, 2)
 x, source, target = torch.randn(3, 4), torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])
 out = torch.zeros(3, 2)
-out[target] += message(x)[source]
+out.index_add_(0, target, message(x)[source])
 out.pow(2).sum().backward()
```

## When to ignore it

Where any one of the values will do. `gradscope doctor --ignore GS517` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.oddities import OddWords, told
from gradscope.rules.rule import Rule


class IndexRepeated(Rule):
    code = "GS517"
    name = "index-repeated"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return told(facts, {"index repeated": _WORDS})


_WORDS = OddWords(
    "The assignment at {this} keeps one of the sums that go to the same element.",
    "{0:,} of {1:,} elements are written to where another one is written as well",
    "Python reads all elements that the index names, adds to each copy, and assigns the "
    "copies: of several for one element one stays. What the others have added is lost, and "
    "backward gives it a gradient as if it were not.",
    "Add them up: `out.index_add_(0, index, values)`, `scatter_add_`, or "
    "`out.index_put_((index,), values, accumulate=True)`.",
)
