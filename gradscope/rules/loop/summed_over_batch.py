"""GS530 summed-over-batch

A term is summed over the whole batch, or averaged, and the one number is then added to a number
for each sample, or multiplied by it.

## How it is recognised

`sum()` without a dimension makes a scalar of a tensor whose first dimension is the batch; the
scalar, negated or multiplied or not, is added to a tensor of one number for each sample; both
were computed of the same samples; and nothing but sums, factors and means lies between that
addition and the loss. A mean over the batch, or a loss function that takes one, is told where
it is multiplied by a tensor of one number for each sample that has no history, and nothing but
sums, factors and means comes after. A penalty on parameters is computed of no samples, and a
total that each sample is compared with goes through something else.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
 optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
 for _ in range(3):
     x = torch.randn(8, 6)
     mean, log_var = encoder(x).chunk(2, dim=-1)
     code = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
     error = (decoder(code) - x).square().sum(dim=-1)
-    divergence = -0.5 * torch.sum(1 + log_var - mean.square() - log_var.exp())
+    divergence = -0.5 * torch.sum(1 + log_var - mean.square() - log_var.exp(), dim=-1)
     loss = (error + divergence).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the factor is meant, and the weight of the term was chosen with it. `gradscope doctor
--ignore GS530` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.ops import VIEWS
from gradscope.rules.rule import Rule
from gradscope.words import count

_LINEAR = frozenset(["Add", "Sub", "Neg", "Mul", "Div", "Mean", "Sum", "ToCopy"]) | VIEWS
"""What a term of a loss goes through on its way to the root."""

_MEANS = ("Mean", "NllLoss", "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss")


class SummedOverBatch(Rule):
    code = "GS530"
    name = "summed-over-batch"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # One finding for each line.
        products: dict[int | None, FindingDraft] = {}
        totals: dict[int | None, FindingDraft] = {}
        for node in facts.graph.nodes:
            if node.short_op == "Mul" and node.origin not in products:
                mean = _mean_in(facts, node.id)
                if mean is not None:
                    products[node.origin] = _averaged(facts, mean, node.id)
            if node.short_op == "Sum" and node.origin not in totals:
                meeting = _meeting(facts, node.id)
                if meeting is not None:
                    totals[node.origin] = _summed(facts, node.id, meeting)
        return (*products.values(), *totals.values())


def _mean_in(facts: Facts, product: int) -> int | None:
    """The mean over the batch that is multiplied by numbers of single samples, which have no
    history."""
    below, size = list(facts.below(product)), (*_shape(facts, product), 0)[0]
    is_product = _shape(facts, product) == (size,) and size > 1
    if not (is_product and len(below) == 1 and _shape(facts, below[0]) == ()):
        return None
    # It may be weighed before.
    mean = below[0]
    while facts.op(mean) in ("Neg", "Mul", "Div") and len(facts.outgoing[mean]) == 1:
        mean = next(iter(facts.below(mean)))
    summand = next(iter(facts.below(mean)), mean)
    is_mean = facts.op(mean) in _MEANS and _shape(facts, summand)[:1] == (size,)
    return mean if is_mean and _is_averaged(facts, product) else None


def _averaged(facts: Facts, mean: int, product: int) -> FindingDraft:
    samples = count(_shape(facts, product)[0], "sample")
    where = facts.at(facts.graph.nodes[product].origin)
    return facts.warning(
        f"{facts.words(mean)} averages over the batch, and is then multiplied by a number for each "
        "sample.",
        mean,
        evidence=f"one number meets {samples} in {facts.words(product)}{where}",
        why="That is the product of two means: which sample has which weight is lost, and all get "
        "the same gradient.",
        remedy="Multiply sample by sample, and average then: `(log_prob * weight).mean()`; a loss "
        'function with `reduction="none"` leaves a number for each.',
    )


def _meeting(facts: Facts, total: int) -> int | None:
    """Where a sum over the batch is added to terms of single samples."""
    if _shape(facts, total) != ():
        return None
    summand = next(iter(facts.below(total)), total)
    size = (*_shape(facts, summand), 0)[0]
    # It may be weighed before.
    reached, pending = {total}, [total]
    while pending and size > 1:
        for above in facts.above(pending.pop()):
            if above in reached or facts.op(above) not in _LINEAR:
                continue
            reached.add(above)
            if facts.op(above) not in ("Add", "Sub"):
                pending.append(above)
            elif _shape(facts, above) == (size,):
                others = [one for one in facts.below(above) if _shape(facts, one) == (size,)]
                is_met = others and summand not in others and _is_averaged(facts, above)
                if is_met and _share_samples(facts, summand, others[0], size):
                    return above
    return None


def _share_samples(facts: Facts, one: int, other: int, size: int) -> bool:
    """Whether both were computed of the same samples; parameters alone are no samples."""
    return any(
        facts.graph.nodes[node].kind != "leaf" and _shape(facts, node)[:1] == (size,)
        for node in facts.reachable([one]) & facts.reachable([other])
    )


def _is_averaged(facts: Facts, node: int) -> bool:
    """Whether nothing but sums, factors and means lie between a term and the root."""
    above = list(facts.above(node))
    while len(above) == 1 and facts.op(above[0]) in _LINEAR:
        above = list(facts.above(above[0]))
    return not above


def _summed(facts: Facts, total: int, meeting: int) -> FindingDraft:
    size = _shape(facts, meeting)[0]
    where = facts.at(facts.graph.nodes[meeting].origin)
    return facts.warning(
        f"{facts.words(total)} adds up the whole batch, and is then added to each sample of it.",
        total,
        evidence=f"one number meets {count(size, 'sample')} in {facts.words(meeting)}{where}",
        why=f"Each sample is given the sum over all {size:,}: in their mean this term weighs "
        f"{size:,} times as much as it should.",
        remedy="Leave one number for each sample (`.sum(dim=-1)` over its own dimensions, or no "
        "sum), and average all terms alike.",
    )


def _shape(facts: Facts, node: int) -> tuple[int, ...]:
    outputs = facts.graph.nodes[node].outputs
    return tuple(outputs[0].shape) if outputs and outputs[0] is not None else (-1,)
