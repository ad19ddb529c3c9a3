"""GS402 freed-graph

backward goes through a part of the graph that an earlier backward call has freed.

## How it is recognised

torch says so; the first node that both calls share is named, and, where the source shows it,
the variable that carries it over: the line that stores it there, and the one that uses it
again. Where backward starts twice from the very same result, the line is that of the second
call.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
 shared = w.exp()
-shared.sum().backward()
-(shared * 2).sum().backward()
+(shared.sum() + (shared * 2).sum()).backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.model.observations import Freed
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class FreedGraph(Rule):
    code = "GS402"
    name = "freed-graph"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for _, finding in read(facts, (_FREED,)):
            yield _shared(facts, facts.seen.freed[0], finding) if facts.seen.freed else finding


_FREED = ErrorReading(
    "backward through the graph a second time",
    "backward goes through a part of the graph that an earlier backward call has freed.",
    "A backward call frees the saved tensors of everything it went through.",
    "If state is carried from step to step, `.detach()` it; if two losses share a part, add "
    "them up and call backward once; what was computed before the loop, compute inside. To go "
    "through one graph several times, as for the rows of a Jacobian, `retain_graph=True` in all "
    "calls but the last.",
)


def _shared(facts: Facts, freed: Freed, finding: FindingDraft) -> FindingDraft:
    """The finding with the node that both calls share."""
    by = facts.location(freed.origin)
    where = f"the call at {by} freed it" if by else "an earlier call freed it"
    # Nothing took what is carried over into a graph of its own: backward starts from it again.
    again = freed.variable if freed.stored is not None and freed.taken is None else ""
    made = None if again else facts.location(facts.graph.nodes[freed.node].origin)
    stored, taken = facts.location(freed.stored), facts.location(freed.taken)
    carried = f"carried over by {freed.variable}"
    carried += f", stored at {stored}" if stored else ""
    carried += f" and used again at {taken}" if taken else ""
    return msgspec.structs.replace(
        finding,
        message=f"backward is called from {again} a second time; its graph was freed."
        if again
        else f"backward goes through {facts.words(freed.node)} a second time; its saved tensors "
        "were freed.",
        location=made or finding.location,
        node=facts.reference(freed.node),
        subject=freed.variable or facts.subject(freed.node),
        evidence=(
            f"{facts.op(freed.node)} is the first whose saved tensors are gone; {where}",
            *([carried] if freed.variable else []),
        ),
    )
