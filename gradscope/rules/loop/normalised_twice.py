"""GS512 normalised-twice

A softmax or sigmoid comes before a loss that begins with one (`cross_entropy`,
`binary_cross_entropy_with_logits`), or a softmax before `nll_loss`; or a sigmoid is given the
result of a softmax.

## How it is recognised

What `cross_entropy` or `binary_cross_entropy_with_logits` is given is the result of a softmax
or a sigmoid, or of a view or an index of it; or what `nll_loss` is given is the result of a
softmax without a log. Information where it is a log_softmax before `cross_entropy`, which
changes nothing. Scores that are scaled in between, as by a temperature, are left out. Also told
is a sigmoid of a sigmoid or a softmax, and a softmax of a softmax; a softmax of sigmoids is not.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
-model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1))
+model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     optimizer.zero_grad()
     scores = model(torch.randn(8, 4))
     nn.functional.cross_entropy(scores, torch.randint(0, 3, (8,))).backward()
     optimizer.step()
```

## When to ignore it

Where scores between 0 and 1 are meant to be the logits. `gradscope doctor --ignore GS512`
leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule


class NormalisedTwice(Rule):
    code = "GS512"
    name = "normalised-twice"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        places: set[int | None] = set()
        for node in facts.graph.nodes:
            loss = _loss_of(facts, node.id)
            source = _source(facts, node.id) if loss or node.short_op in _STACKED else None
            if source is None:
                continue
            origin = facts.graph.nodes[source].origin
            if not loss:
                if facts.op(source) in _STACKED[node.short_op]:
                    yield _stacked(facts, source, node.id)
            elif origin not in places and origin != node.origin:
                found = _at_loss(facts, source, node.id, loss)
                if found is not None:
                    places.add(origin)
                    yield found


_LOGITS = ("BinaryCrossEntropyWithLogits",)
_NLL = ("NllLoss", "NllLoss2D", "NllLossNd")
_SQUASHING = ("Softmax", "Sigmoid", "LogSoftmax", "LogSigmoid")
_STACKED = {
    "Sigmoid": ("Sigmoid", "Softmax"),
    # A softmax of sigmoids may be the weights of what they choose.
    "Softmax": ("Softmax",),
    "LogSoftmax": ("Softmax",),
}
"""What takes scores, and what gives no scores."""

_SHAPING = (
    *("View", "UnsafeView", "ReshapeAlias", "T", "Transpose", "Permute", "Squeeze", "Unsqueeze"),
    *("Select", "Slice", "Index", "Alias", "Clone", "ToCopy", "AsStrided", "Expand", "Cat"),
)
"""What only moves numbers about."""


def _source(facts: Facts, node: int) -> int | None:
    """The softmax or sigmoid whose result a node is given, whatever only moves it about."""
    while (below := next(iter(facts.below(node)), None)) is not None:
        if facts.op(below) in _SQUASHING:
            return below
        if facts.op(below) not in _SHAPING:
            return None
        node = below
    return None


def _loss_of(facts: Facts, node: int) -> str:
    """What a loss takes of which this node is the first: logits, of one class or (``cross``) of
    many, or log-probabilities."""
    op = facts.op(node)
    if op in _LOGITS:
        return "logits"
    if op == "LogSoftmax":
        return "logits, cross" if _same_call(facts, node, facts.above(node)) else ""
    is_nll = op in _NLL and not _same_call(facts, node, facts.below(node))
    return "log-probabilities" if is_nll else ""


def _same_call(facts: Facts, node: int, others: Iterable[int]) -> bool:
    """Whether one call made this node and one of the others: cross_entropy is made of several."""
    origin = facts.graph.nodes[node].origin
    return any(origin is not None and facts.graph.nodes[one].origin == origin for one in others)


def _stacked(facts: Facts, source: int, node: int) -> FindingDraft:
    """A sigmoid or softmax of what is a probability already, whatever is made of it."""
    below = facts.op(source).lower()
    return facts.warning(
        f"{facts.words(node)} is given the result of a {below}.",
        node,
        evidence=f"the {below} is taken{facts.at(facts.graph.nodes[source].origin)}",
        why="What lies between 0 and 1 is taken for scores: a sigmoid of it lies between 0.5 and "
        "0.73, and a softmax is nearly even; the gradient is small whatever the answer.",
        remedy="Leave one of the two out.",
    )


def _at_loss(facts: Facts, source: int, node: int, loss: str) -> FindingDraft | None:
    """A loss that makes probabilities of probabilities, or takes them for their logarithms."""
    op, words = facts.op(source), facts.words(node)
    evidence = f"{op} goes into the loss{facts.at(facts.graph.nodes[node].origin)}"
    if loss == "log-probabilities" and op.startswith("Log"):
        return None
    if loss == "log-probabilities":
        return facts.warning(
            f"{words} takes log-probabilities, and is given those of {op.lower()} without the log.",
            source,
            evidence=evidence,
            why="nll_loss picks the element of the right class and changes its sign; the log is "
            "left to its input. Without it the gradient is largest where the answer is right "
            "already.",
            remedy="Use `log_softmax` in place of it, or `cross_entropy` on the logits.",
        )
    is_cross = loss == "logits, cross"
    # A log_softmax of a log_softmax is the same again.
    harmless = op == "LogSoftmax" and is_cross
    return facts.finding(
        "information" if harmless else "warning",
        f"{words} begins with a {'softmax' if is_cross else 'sigmoid'}, and is given the result of "
        f"a {op.lower()}.",
        source,
        evidence=evidence,
        why="A log_softmax of log-probabilities gives them unchanged; it is computed for nothing."
        if harmless
        else "The scores are squeezed into 0 to 1 before they are made probabilities: the loss "
        "cannot come near zero, and the gradient is small even where the answer is wrong.",
        remedy="Give the loss the scores as they are (logits), and use probabilities outside of "
        "the loss only; nll_loss takes log-probabilities."
        if is_cross
        else "Give the loss the scores as they are (logits); binary_cross_entropy takes "
        "probabilities.",
    )
