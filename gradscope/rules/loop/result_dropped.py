"""GS515 result-dropped

A statement computes something of a gradient or a parameter out of place, or detaches a result,
and drops what it gets, so nothing changes.

## How it is recognised

The function that is called has a sister that works in place (`clamp` and `clamp_`, `mul` and
`mul_`), it is given a gradient, a parameter, the `.data` of either, or what was computed of
that outside of any graph, and the next thing that the program does is to drop what it returns.
`h.detach()` of a result with history is told as well. What only measures (`norm`), writes with
`out=`, or goes into anything is not.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for batch in torch.randn(8, 8, 4):
     optimizer.zero_grad()
     model(batch).pow(2).mean().backward()
     for parameter in model.parameters():
-        parameter.grad.clamp(-1, 1)
+        parameter.grad.clamp_(-1, 1)
     optimizer.step()
```

## When to ignore it

Where an operation is only timed, or warmed up. `gradscope doctor --ignore GS515` leaves it out.
"""

from __future__ import annotations

from gradscope.model.loop_observations import MistakeKind
from gradscope.rules.questions.wording import MistakeRule, MistakeWords

_DROPPED = "{this} changes nothing: it gives a new tensor, which is dropped at once."
_IN_PLACE = "Call `{name}_`, with an underscore, which works in place; or assign what it gives."

_WORDS: dict[MistakeKind, MistakeWords] = {
    "gradient dropped": MistakeWords(
        _DROPPED,
        "`{name}` is given a gradient, and nothing takes its result",
        "The gradient stays as it was, and the step uses it so.",
        _IN_PLACE,
    ),
    "parameter dropped": MistakeWords(
        _DROPPED,
        "`{name}` is given a parameter, and nothing takes its result",
        "The parameter stays as it was.",
        _IN_PLACE,
    ),
    "history dropped": MistakeWords(
        _DROPPED,
        "`{name}` is given a result with history, and nothing takes its result",
        "The result keeps its history, and takes it into whatever it goes into next.",
        "Assign what it gives: `h = h.detach()`.",
    ),
}


class ResultDropped(MistakeRule):
    code = "GS515"
    name = "result-dropped"
    words = _WORDS
