"""GS206 outlier-gain

One operation multiplies the gradient by far more, or far less, than others of its kind do.

## How it is recognised

Of a layer with a weight: what it sends to its operand by what it receives, compared with the
median of at least three other layers of the same operation. More than 300 times as much, if it
also sends more than 30 times what the layer above it received: a normalisation between the two
may take it back. Or less than 1e-4 of it, where another layer follows, and some leaf below gets
less than 1e-5 of the mean gradient that the best-served one gets.

Of an operation whose derivative has a pole (a division, a root, a logarithm, a norm): it
multiplies the gradient by more than 1e5, and a leaf gets more than 1,000, and more than 1,000
times what the operation received. So does the `normalize` of a row of zeros, where `eps` is all
that it divides by.

Of a product of more than one number with a constant, or a division by one: it multiplies the
gradient by more than 1e4, and a leaf below gets more than 1,000 and more than 1,000 times what
the product received; or by less than 1e-6, and either no leaf below gets more than 1e-6 (and
1e-6 of what it received), or some leaf below is starved as above. A normalisation that takes
the factor back keeps the rule quiet. A single number, as a loss, may be scaled on purpose; that
is told only where no leaf gets more than 1e-12.

## A program that has it, healed

```diff
 import torch
 from torch import nn

-w = nn.Parameter(torch.zeros(4, 3))
+torch.manual_seed(0)
+w = nn.Parameter(torch.randn(4, 3))
 x = torch.ones(4, 3)
 loss = (nn.functional.normalize(w, dim=1) * x).sum()
 loss.backward()
```

## When to ignore it

Where an optimizer that divides by the size of the gradient (Adam) makes up for it, and clipping
does not. `gradscope doctor --ignore GS206` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import gain
from gradscope.rules.rule import Rule


class OutlierGain(Rule):
    code = "GS206"
    name = "outlier-gain"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return gain.outlier_gain(facts)
