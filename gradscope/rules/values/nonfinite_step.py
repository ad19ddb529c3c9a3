"""GS106 nonfinite-step

A step of the optimizer makes NaN or infinity of finite parameters and finite gradients.

## How it is recognised

While calls are looked at in full, the parameters are read before and after each step: one that
was finite before, with gradients that are all finite, is not after it. In the steps between,
nothing is read. The finding stands where the optimizer was made, with its settings; those that
the dtype of the parameter rounds to 0 are named, and so is a learning rate that is NaN or
infinite. Adam's `eps=1e-8` is 0 in float16. What is computed of such a parameter later is no
finding of its own.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
-model = nn.Linear(4, 2).to(torch.float16)
+model = nn.Linear(4, 2)
 optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
-x, y = torch.randn(8, 4).half(), torch.randn(8, 2)
+x, y = torch.randn(8, 4), torch.randn(8, 2)
 for _ in range(4):
-    loss = (model(x).float() - y).square().mean() / 100
+    loss = (model(x) - y).square().mean() / 100
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import SpoilingStep, SpoiltParameter
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.nonfinite import amounts
from gradscope.rules.rule import Rule
from gradscope.words import count, joined, listed

_LARGEST = {"float16": "65,504", "bfloat16": "3.4e38", "float32": "3.4e38", "float64": "1.8e308"}

_ROUNDED = (
    "It divides by the root of squared gradients that it adds up or averages, to which eps is "
    "added so that this is never 0. In {dtype} eps is 0, and so are the squares of small "
    "gradients: 0/0 is NaN, and anything else divided by 0 is infinite.",
    "Keep the parameters in float32, and compute in half precision under `torch.autocast` with a "
    "GradScaler; or give an eps that {dtype} can hold, such as `eps=1e-4`.",
)
_OVERFLOWS = (
    "What the step computes is NaN, or larger than {dtype} can hold ({largest}).",
    "Lower the learning rate, clip the gradients (`torch.nn.utils.clip_grad_norm_`), and keep the "
    "parameters in float32.",
)
_NO_NUMBER = (
    "A step multiplies what it subtracts by the learning rate: whatever the gradients are, nothing "
    "finite comes of it.",
    "Look at what computes the rate, a schedule above all: 0/0 where a warm-up of 0 steps is "
    "divided by, a power of a negative number.",
)


class NonfiniteStep(Rule):
    code = "GS106"
    name = "nonfinite-step"
    before = {"GS101": "node", "GS102": "node", "GS105": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for step in facts.seen.spoiling_steps:
            if step.parameters:
                yield _finding(facts, step)


def _finding(facts: Facts, step: SpoilingStep) -> FindingDraft:
    first = step.parameters[0]
    names = [parameter.name for parameter in step.parameters]
    leaves = [facts.graph.leaves[one.leaf].node for one in step.parameters if one.leaf is not None]
    rounded = [setting for setting in step.settings if setting.is_zero]
    kept = [f"{one.name}={short(one.value)}" for one in step.settings if not one.is_zero]
    is_no_number = any(one.name == "lr" and isinstance(one.value, str) for one in step.settings)
    is_rounded = any(one.name == "eps" for one in rounded)
    words = _NO_NUMBER if is_no_number else _ROUNDED if is_rounded else _OVERFLOWS
    largest = _LARGEST.get(first.dtype, "a finite number")
    why, remedy = (text.format(dtype=first.dtype, largest=largest) for text in words)
    line = facts.location(step.origin)
    called = f"{facts.expression(step.origin) or 'step()'}{f' ({line})' if line else ''}"
    places = (step.made, step.origin)
    return facts.finding(
        "error",
        f"The learning rate of {step.optimizer} is not a finite number."
        if is_no_number
        else f"A step of {step.optimizer} makes NaN or infinity of finite parameters and "
        "gradients.",
        location=next(filter(None, map(facts.location, places)), None),
        subject=names[0],
        evidence=(
            f"{called} after backward call {step.call} spoils "
            f"{count(len(set(names)), 'parameter')}: {listed(names)}",
            _counts(first),
            *(f"{one.name}={short(one.value)} is 0 in {first.dtype}" for one in rounded),
            *([f"{step.optimizer} with {', '.join(kept)}"] if kept else []),
        ),
        why=why,
        remedy=remedy,
        step=step.call,
        nodes=facts.reaching(leaves),
    )


def _counts(one: SpoiltParameter) -> str:
    gradient = "" if one.gradient is None else f"; its gradient is finite, {short(one.gradient)}"
    amount = f"{joined(amounts(one.nan, one.inf))} of {count(one.count, 'element')}"
    return f"{one.name or 'the first'}: {amount}, {one.dtype}{gradient}"
