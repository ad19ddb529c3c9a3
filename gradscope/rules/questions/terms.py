"""The rule about terms of a loss that do not go together: a sum or a mean over the batch beside
numbers of single samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.ops import VIEWS
from gradscope.words import count

_LINEAR = frozenset(["Add", "Sub", "Neg", "Mul", "Div", "Mean", "Sum", "ToCopy"]) | VIEWS
"""What a term of a loss goes through on its way to the root."""


_MEANS = ("Mean", "NllLoss", "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss")


def summed_over_batch(facts: Facts) -> Iterable[FindingDraft]:
    """GS530: one number for the whole batch, added to one for each sample, or multiplied by it."""
    yield from _averaged_first(facts)
    told: set[int | None] = set()
    for node in facts.graph.nodes:
        if node.short_op != "Sum" or _shape(facts, node.id) != ():
            continue
        found = next(_meetings(facts, node.id), None)
        if found is not None and node.origin not in told:
            told.add(node.origin)
            yield _summed(facts, node.id, *found)


def _averaged_first(facts: Facts) -> Iterator[FindingDraft]:
    """A mean with history that is multiplied by numbers of single samples, which have none."""
    told: set[int | None] = set()
    for node in facts.graph.nodes:
        below, size = list(facts.below(node.id)), (*_shape(facts, node.id), 0)[0]
        is_product = node.short_op == "Mul" and _shape(facts, node.id) == (size,) and size > 1
        if not (is_product and len(below) == 1 and _shape(facts, below[0]) == ()):
            continue
        # It may be weighed before.
        mean = below[0]
        while facts.op(mean) in ("Neg", "Mul", "Div") and len(list(facts.below(mean))) == 1:
            mean = next(iter(facts.below(mean)))
        summand = next(iter(facts.below(mean)), mean)
        is_mean = facts.op(mean) in _MEANS and _shape(facts, summand)[:1] == (size,)
        if is_mean and node.origin not in told and _is_averaged(facts, node.id):
            told.add(node.origin)
            where = facts.at(node.origin)
            yield facts.warning(
                f"{facts.words(mean)} averages over the batch, and is then multiplied by a number "
                "for each sample.",
                mean,
                evidence=f"one number meets {count(size, 'sample')} in {facts.words(node.id)}"
                f"{where}",
                why="That is the product of two means: which sample has which weight is lost, and "
                "all get the same gradient.",
                remedy="Multiply sample by sample, and average then: `(log_prob * weight).mean()`; "
                'a loss function with `reduction="none"` leaves a number for each.',
            )


def _meetings(facts: Facts, total: int) -> Iterator[tuple[int, int]]:
    """Where a sum is added to terms of samples, and how many these are."""
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
                is_own = summand in others
                is_met = others and not is_own and _is_averaged(facts, above)
                if is_met and _share_samples(facts, summand, others[0], size):
                    yield above, size


def _share_samples(facts: Facts, one: int, other: int, size: int) -> bool:
    """Whether both were computed of the same samples; parameters alone are no samples."""
    for node in facts.reachable([one]) & facts.reachable([other]):
        if facts.graph.nodes[node].kind != "leaf" and _shape(facts, node)[:1] == (size,):
            return True
    return False


def _is_averaged(facts: Facts, node: int) -> bool:
    """Whether nothing but sums, factors and means lie between a term and the root."""
    above = list(facts.above(node))
    while len(above) == 1 and facts.op(above[0]) in _LINEAR:
        above = list(facts.above(above[0]))
    return not above


def _summed(facts: Facts, total: int, meeting: int, size: int) -> FindingDraft:
    words = facts.words(total)
    where = facts.at(facts.graph.nodes[meeting].origin)
    return facts.warning(
        f"{words} adds up the whole batch, and is then added to each sample of it.",
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
