"""Rules about what a loss is given: probabilities, where it begins with a softmax itself or takes
their logarithms."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.oddities import looking_for

_SCALES = looking_for("input no log", "target no log", "target log")

_LOGITS = ("BinaryCrossEntropyWithLogits",)
_NLL = ("NllLoss", "NllLoss2D", "NllLossNd")
_SQUASHING = ("Softmax", "Sigmoid", "LogSoftmax", "LogSigmoid")
_SHAPING = (
    *("View", "UnsafeView", "ReshapeAlias", "T", "Transpose", "Permute", "Squeeze", "Unsqueeze"),
    *("Select", "Slice", "Index", "Alias", "Clone", "ToCopy", "AsStrided", "Expand", "Cat"),
)
"""What only moves numbers about."""


def normalised_twice(facts: Facts) -> Iterable[FindingDraft]:
    """GS512: a softmax or sigmoid before a loss that begins with one, or takes its logarithm."""
    yield from _SCALES(facts)
    told: set[int | None] = set()
    for node in facts.graph.nodes:
        loss = _loss_of(facts, node.id)
        if loss is None:
            if stacked := _stacked(facts, node.id):
                yield stacked
            continue
        source = _source(facts, node.id)
        origin = None if source is None else facts.graph.nodes[source].origin
        if source is None or origin in told or origin == node.origin:
            continue
        finding = _finding(facts, source, node.id, loss)
        if finding is not None:
            told.add(origin)
            yield finding


def _stacked(facts: Facts, node: int) -> FindingDraft | None:
    """A sigmoid or softmax of what is a probability already, whatever is made of it."""
    op, source = facts.op(node), _source(facts, node)
    below = "" if source is None else facts.op(source)
    # A softmax of sigmoids may be the weights of what they choose.
    if op not in ("Sigmoid", "Softmax", "LogSoftmax") or below not in ("Sigmoid", "Softmax"):
        return None
    if source is None or (op != "Sigmoid" and below == "Sigmoid"):
        return None
    return facts.warning(
        f"{facts.words(node)} is given the result of a {below.lower()}.",
        node,
        evidence=f"the {below.lower()} is taken{facts.at(facts.graph.nodes[source].origin)}",
        why="What lies between 0 and 1 is taken for scores: a sigmoid of it lies between 0.5 and "
        "0.73, and a softmax is nearly even; the gradient is small whatever the answer.",
        remedy="Leave one of the two out.",
    )


def _loss_of(facts: Facts, node: int) -> str | None:
    """What a loss takes of which this node is the first: logits, of one class or (``cross``) of
    many, or log-probabilities."""
    op = facts.op(node)
    if op in _LOGITS:
        return "logits"
    if op == "LogSoftmax":
        return "logits, cross" if _same_call(facts, node, facts.above(node)) else None
    if op in _NLL and not _same_call(facts, node, facts.below(node)):
        return "log-probabilities"
    return None


def _same_call(facts: Facts, node: int, others: Iterable[int]) -> bool:
    """Whether one call made this node and one of the others: cross_entropy is made of several."""
    origin = facts.graph.nodes[node].origin
    return any(origin is not None and facts.graph.nodes[one].origin == origin for one in others)


def _source(facts: Facts, node: int) -> int | None:
    """The softmax or sigmoid whose result the loss is given, whatever only moves it about."""
    for _ in range(len(facts.graph.nodes)):
        below = list(facts.below(node))
        if not below:
            return None
        node = below[0]
        if facts.op(node) in _SQUASHING:
            return node
        if facts.op(node) not in _SHAPING:
            return None
    return None


def _finding(facts: Facts, source: int, node: int, loss: str) -> FindingDraft | None:
    op, where = facts.op(source), facts.at(facts.graph.nodes[node].origin)
    words = facts.words(node)
    if loss == "log-probabilities":
        if op.startswith("Log"):
            return None
        return facts.warning(
            f"{words} takes log-probabilities, and is given those of {op.lower()} without the log.",
            source,
            evidence=f"{op} goes into the loss{where}",
            why="nll_loss picks the element of the right class and changes its sign; the log is "
            "left to its input. Without it the gradient is largest where the answer is right "
            "already.",
            remedy="Use `log_softmax` in place of it, or `cross_entropy` on the logits.",
        )
    # A log_softmax of a log_softmax is the same again.
    harmless = op == "LogSoftmax" and loss == "logits, cross"
    return facts.finding(
        "information" if harmless else "warning",
        f"{words} begins with a {'softmax' if 'cross' in loss else 'sigmoid'}, and is given the "
        f"result of a {op.lower()}.",
        source,
        evidence=f"{op} goes into the loss{where}",
        why="A log_softmax of log-probabilities gives them unchanged; it is computed for nothing."
        if harmless
        else "The scores are squeezed into 0 to 1 before they are made probabilities: the loss "
        "cannot come near zero, and the gradient is small even where the answer is wrong.",
        remedy="Give the loss the scores as they are (logits), and use probabilities outside of "
        "the loss only; nll_loss takes log-probabilities."
        if "cross" in loss
        else "Give the loss the scores as they are (logits); binary_cross_entropy takes "
        "probabilities.",
    )
