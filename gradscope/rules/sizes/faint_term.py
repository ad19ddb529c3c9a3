"""GS207 faint-term

One term of the loss drowns another: to each parameter that both reach, it brings under 1 % beside
the other.

## How it is recognised

The loss is taken apart into its terms, as `gradscope backward --by term` does, and the gradient
of each is sent through the graph alone. Reported is a term whose 2-norm is under 1 % of another
one's, and of all others together, at every leaf that both reach, which are half of its own or
more; in each of the first calls that were measured, three at most.

Not measured are graphs that would take long (the number of nodes times that of terms is above
4,000) or much memory (that of terms times the elements of the largest tensor is above 20
million), those with a custom Function, whose backward would run once more, and a program of
several ranks.

It is information only: a penalty is often meant to be small.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
 optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
 x = torch.randn(32, 8)
 for _ in range(3):
     z = encoder(x)
     mse = (decoder(z) - x).pow(2).mean()
     prior = z.pow(2).mean()
-    loss = mse + 1000 * prior
+    loss = mse + 0.1 * prior
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the term is meant to be so small.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.rule import Rule
from gradscope.words import count


class FaintTerm(Rule):
    code = "GS207"
    name = "faint-term"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for term in facts.seen.faint_terms:
            made = facts.expression(term.origin).strip("`")
            yield facts.finding(
                "information",
                f"`{term.name}` brings next to nothing beside `{term.beside}`: under 1 % of its "
                "gradient to each leaf that both reach.",
                location=facts.location(term.origin),
                subject="" if made == term.name else term.name,
                evidence=f"{short(100 * term.share)} % at most, in {term.leaf}; both reach "
                f"{term.leaves:,} of its {count(term.of, 'leaf')}; measured in the first "
                f"{count(term.calls, 'backward call')} of several terms",
                why="What these parameters learn is what the other term says.",
                remedy=f"Where `{term.name}` is meant to count there, give it a larger factor, or "
                "the other a smaller one.",
            )
