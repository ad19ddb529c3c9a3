"""GS205 zero-gradient

From one operation on, the gradient is exactly zero.

## How it is recognised

An operation receives a gradient, sends nothing but zeros, and some leaf gets nothing else: a
step function, a clamp that all elements lie beyond, a softmax over one element,
nearest-neighbour sampling, a product of zeros. Or, in float16, what it received is on average
below 6e-5 an element (for a mean: below 6e-8 after the division). Or, whatever the operation, all
leaves get zeros though the loss is not 0. Of two factors that are both zero that is told where what
is below gets nothing in any call.

Or a weight gets gradients from several uses, none of them zero, and their sum is exactly zero, in
every call that was watched: as of a ratio or a difference of something and itself, made twice of
the same numbers. The finding is where these ways part. Not told are other gradients that cancel,
exactly or up to rounding, as below a normalisation that leaves nothing to learn: of one number, or
of a sum over what a softmax, a batch or a layer norm gives.

A margin that every sample keeps is left alone, as is a loss of exactly 0, and what is zero where
the loss is NaN.

## A program that has it, healed

```diff
 import torch

 w = torch.tensor([0.3, 1.7], requires_grad=True)
-loss = (torch.round(w) - 1).pow(2).sum() + 0.5
+q = w + (torch.round(w) - w).detach()
+loss = (q - 1).pow(2).sum() + 0.5
 loss.backward()
```

## When to ignore it

Where no gradient is wanted; then `detach()` says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.stops import FACTORS, Stop, alive, silenced, stops
from gradscope.rules.rule import Rule
from gradscope.words import count, listed


class ZeroGradient(Rule):
    code = "GS205"
    name = "zero-gradient"
    before = {"GS204": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        known, leaves, learners = stops(facts), facts.graph.leaves, facts.seen.learners

        def silences(node: int) -> bool:
            # Two factors may be 0 in one call alone, as behind a last layer that begins at 0.
            awake = facts.once(alive) if known[node] is FACTORS else set[str]()
            return not awake.issuperset(silenced(facts, node))

        for nodes in facts.by_place(sorted(known)).values():
            silencing = next(filter(silences, nodes), None)
            if silencing is not None:
                yield _stop(facts, silencing, known[silencing], nodes)
        # In one call two may be alike by chance, as a pair that is compared.
        dead = {leaves[one.leaf].node for one in learners if one.leaf is not None and not one.alive}
        cancelled = [leaf for leaf in sorted(dead) if _cancels(facts, leaf)]
        # A bias alone may cancel by nature, as in the difference of two scores.
        if any(_dimensions(facts, leaf) > 1 for leaf in cancelled):
            yield _cancelled(facts, cancelled)


def _dimensions(facts: Facts, leaf: int) -> int:
    tensor = facts.graph.nodes[leaf].outputs[0]
    return 0 if tensor is None else len(tensor.shape)


def _cancels(facts: Facts, leaf: int) -> bool:
    """Whether a leaf gets several gradients that are not zero, and exactly zero in all."""
    if facts.backward is None or [one.state for one in facts.received(leaf)] != ["zero"]:
        return False
    parts = [facts.backward.on_edge(edge).state for edge in facts.incoming[leaf]]
    return len(parts) > 1 and set(parts) == {"finite"}


def _cancelled(facts: Facts, leaves: list[int]) -> FindingDraft:
    assert facts.backward is not None
    weight = max(leaves, key=lambda leaf: _dimensions(facts, leaf))
    edges = facts.incoming[weight]
    ways = [facts.reaching([facts.graph.edges[edge].source]) for edge in edges]
    # The nearest that all of them come through, where it is one root that they come from.
    fork = max(set.intersection(*ways), default=None)
    norms = listed(short(facts.backward.on_edge(edge).norm) for edge in edges)
    names = [facts.leaf_names[leaf] for leaf in leaves]
    return facts.warning(
        f"The gradients that meet at {facts.leaf_names[weight]} cancel to exactly zero."
        if fork is None
        else f"The gradients that part at {facts.words(fork)} cancel to exactly zero where they "
        "meet.",
        weight if fork is None else fork,
        evidence=(
            f"{facts.leaf_names[weight]}: {count(len(edges), 'gradient')} of {norms} (2-norm) "
            "arrive, and together they are 0",
            f"nothing but zeros for {count(len(names), 'leaf')}: {listed(names)}; nothing else in "
            f"{count(facts.seen.calls, 'backward call')}",
        ),
        why="What one brings another takes away, as where something is divided by itself, or taken "
        "from itself.",
        remedy="Where one of them is there for its value only (an old policy, a target), "
        "compute it under torch.no_grad(), or `.detach()` it.",
        of_values=True,
    )


def _stop(facts: Facts, node: int, stop: Stop, nodes: list[int]) -> FindingDraft:
    names = silenced(facts, node)
    sent = [one.state for _, one in facts.sent(node) if one.state not in ("none", "not reached")]
    zeros = sent.count("zero")
    where = f" to {zeros} of {len(sent)} operands" if zeros < len(sent) else ""
    return facts.warning(
        f"The gradient becomes exactly zero at {facts.words(node)}.",
        node,
        evidence=(
            f"received {short(facts.received(node)[0].norm)} (2-norm), sent 0{where}",
            f"nothing but zeros for {count(len(names), 'leaf')}: {listed(names)}",
        ),
        why=stop.why,
        remedy=stop.remedy,
        nodes=nodes,
        of_values=not stop.is_always,
    )
