"""Rules about numbers that are too large or too small for half precision, and an estimate of how
far off each leaf's gradient is for it.

Below 6.1e-5 the numbers of float16 lie 6e-8 apart, so that each such element is off by 1.7e-8 on
average (a rectangular distribution of width w has the standard deviation w/√12), and what is below
3e-8 becomes 0.  Errors of different tensors are taken as independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions.nonfinite_evidence import aftermath, counts
from gradscope.rules.questions.nonfinite_sources import MOST, BackwardSources, ForwardSources
from gradscope.rules.questions.ops import ACCUMULATING, GROWING, MEETING, SCALING
from gradscope.rules.questions.zeros import Zeros, all_zero, zeroing
from gradscope.words import count, listed

CLOSE = 0.5
"""Share of a gradient near the largest number that is worth a word."""

TINY = 6e-8
"""The smallest number of float16 above 0."""

SMALL = 6e-5
"""The smallest float16 with full precision."""

LOST = 0.1
"""Relative error of all gradients that is too much."""

NOTICED = 0.02
"""The same from which on it is told."""

_SCALE = "Scale the loss (torch.amp.GradScaler), keep it in float32, or use bfloat16."

LIMITS = {"float16": "65,504", "bfloat16": "3.4e38"}
"""The largest number of each half precision."""


def half_overflow(facts: Facts) -> Iterable[FindingDraft]:
    """GS103: a number too large for half precision, forward or backward."""
    forward = facts.once(ForwardSources)
    groups = facts.by_place(node for node in forward.born if _overflows(facts, node))
    for nodes in list(groups.values())[:MOST]:
        yield _overflow_finding(facts, forward, nodes)
    if not forward.roots:
        hidden = facts.by_place(_hidden_overflows(facts, forward))
        for nodes in list(hidden.values())[:1]:
            yield _hidden_finding(facts, nodes)
        backward = facts.once(BackwardSources)
        born = [node for node in backward.born if _overflows_backward(facts, node)]
        if born:
            yield _gradient_overflow(facts, born)
        elif not backward.born:
            yield from _close_to_overflow(facts)


def _overflow_finding(facts: Facts, forward: ForwardSources, nodes: list[int]) -> FindingDraft:
    dtype = _half_of(facts, nodes[0])
    return facts.finding(
        "error",
        f"{facts.words(nodes[0])} overflows in {dtype}.",
        nodes[0],
        evidence=(
            *counts(facts, nodes),
            f"the largest number of {dtype} is {LIMITS[dtype]}",
            aftermath(facts, forward),
        ),
        why=f"What goes into it is finite, but the result is larger than {dtype} can hold.",
        remedy="Compute this part in float32 (`.float()`, or a block of "
        "`torch.autocast(..., enabled=False)`), scale before it, or use bfloat16.",
        nodes=nodes,
    )


def _hidden_overflows(facts: Facts, forward: ForwardSources) -> Iterable[int]:
    """Products and sums in float16 that became infinite, and then were divided by."""
    for node in range(len(facts.graph.nodes)):
        if facts.op(node) not in ACCUMULATING or _half_of(facts, node) != "float16":
            continue
        grown = forward.inf[node] and not (forward.nan[node] or forward.meant[node])
        if grown and not forward.sources(node) and node not in forward.intakes:
            yield node


def _hidden_finding(facts: Facts, nodes: list[int]) -> FindingDraft:
    return facts.warning(
        f"{facts.words(nodes[0])} overflows in float16, and nobody notices.",
        nodes[0],
        evidence=(
            *counts(facts, nodes),
            f"the largest number of float16 is {LIMITS['float16']}",
            "the loss is finite all the same",
        ),
        why="What comes after turns infinity into a finite number, as 1/inf is 0: the result says "
        "nothing of what went in, and no gradient gets past.",
        remedy="Compute this part in float32 (`x.float()`) and cast the result back.",
        nodes=(),  # what goes wrong in backward there is worse
    )


def _gradient_overflow(facts: Facts, nodes: list[int]) -> FindingDraft:
    node = nodes[0]
    scaled = is_scaled(facts)
    return facts.finding(
        "information" if scaled else "error",
        f"The gradient overflows in half precision in backward of {facts.words(node)}.",
        node,
        evidence=f"received {short(facts.received(node)[0].norm)} (2-norm), sent infinity",
        why="With a gradient scaler this is expected in the first steps; it skips them and lowers "
        "its scale."
        if scaled
        else "A gradient larger than 65,504 has no float16.",
        remedy="Nothing, if it happens rarely."
        if scaled
        else "Use torch.amp.GradScaler, or keep this part in float32.",
        nodes=nodes,
    )


def _close_to_overflow(facts: Facts) -> Iterable[FindingDraft]:
    """A gradient that a few times as much makes infinite; a scaler works so far on purpose."""
    if is_scaled(facts):
        return
    for node in range(len(facts.graph.nodes)):
        halves = [info for _, info in facts.sent(node) if info.half is not None]
        share = max((float(info.half.large) for info in halves if info.half), default=0.0)
        if share >= CLOSE:
            yield facts.finding(
                "information",
                f"The gradient is close to overflow in float16 in backward of {facts.words(node)}.",
                node,
                evidence=f"{share:.0%} of what it sends is above 4,094, a sixteenth of the largest "
                "number",
                why=f"The largest number of float16 is {LIMITS['float16']}; a batch with a larger "
                "loss makes it infinite.",
                remedy="Use torch.amp.GradScaler, which skips such steps, divide the loss, or use "
                "bfloat16.",
            )
            return


def _half_of(facts: Facts, node: int) -> str:
    """The half precision of a node's result, or ""."""
    dtypes = [out.dtype for out in facts.graph.nodes[node].outputs if out is not None]
    return next((dtype for dtype in dtypes if dtype in LIMITS), "")


def _overflows(facts: Facts, node: int) -> bool:
    """Whether a birth in the forward pass is a number too large for float16."""
    if _half_of(facts, node) != "float16" or facts.op(node) not in GROWING:
        return False
    # NaN is an overflow only where sums of both signs have met on the way.
    return facts.once(ForwardSources).inf[node] or facts.op(node) in MEETING


def _overflows_backward(facts: Facts, node: int) -> bool:
    """Whether a birth in the backward pass is a gradient too large for float16."""
    if facts.is_compiled(node):
        # It casts inside, and what overflows there may leave it as NaN in float32.  Who scales the
        # loss expects that now and then, and skips the step.
        return is_scaled(facts)
    bad = [info for _, info in facts.sent(node) if info.state == "non-finite"]
    halves = all(info.dtype == "float16" and not info.nan for info in bad)
    return bool(bad) and halves and facts.op(node) in GROWING


def half_underflow(facts: Facts) -> Iterable[FindingDraft]:
    """GS104: a gradient too small for half precision."""
    nodes = [node for node in zeroing(facts) if _underflows(facts, node)]
    for node in nodes:
        names = facts.once(Zeros).silenced(node)
        if not names:
            continue
        yield facts.warning(
            f"The gradient underflows to zero in float16 at {facts.words(node)}.",
            node,
            evidence=(
                f"received {short(facts.received(node)[0].norm)} (2-norm), sent 0",
                f"float16 has nothing between 0 and {TINY}",
                f"nothing but zeros for {len(names):,} leaves: {listed(names)}",
            ),
            why="The gradient is not zero, but rounds to zero in this dtype.",
            remedy=_SCALE,
            nodes=nodes,
        )
        return
    yield from _rounded(facts)


def _rounded(facts: Facts) -> Iterable[FindingDraft]:
    """Gradients that are not zero yet, but have few digits left."""
    rounding = facts.once(HalfRounding)
    if rounding.start is None or rounding.total < NOTICED or is_scaled(facts):
        return
    start = rounding.start
    off = [leaf for leaf, error in rounding.leaves.items() if error >= LOST]
    names = [facts.leaf_names[leaf] for leaf in off]
    few = f"{count(len(off), 'leaf').replace('leafs', 'leaves')} off by {LOST:.0%} or more"
    yield facts.finding(
        "warning" if rounding.total >= LOST else "information",
        f"The gradient becomes so small at {facts.words(start)} that float16 has few digits left.",
        start,
        evidence=(
            f"{rounding.small:.0%} of what it sends is below {SMALL}, where float16 counts in "
            f"steps of {TINY}",
            f"all gradients are off by about {rounding.total:.0%}",
            *([f"{few}: {listed(names)}"] if off else []),
        ),
        why="A number below 6e-5 has fewer digits in float16 the smaller it is, and below 3e-8 it "
        "is 0.",
        remedy=_SCALE,
    )


def _underflows(facts: Facts, node: int) -> bool:
    """Whether the zeros that a node sent are float16 numbers too small to be written."""
    if facts.op(node) not in SCALING or not all_zero(facts, node):
        return False
    received = next(info for info in facts.received(node) if info.state == "finite")
    sent = [(target, info) for target, info in facts.sent(node) if info.state == "zero"]
    if received.norm is None or any(info.dtype != "float16" for _, info in sent):
        return False
    output = facts.graph.nodes[node].outputs[0]
    size = elements(output.shape) if output else 1
    typical: float = float(received.norm) / max(size, 1) ** 0.5
    if facts.op(node) == "Mean":
        typical *= size / max(_input_size(facts, sent[0][0]), 1)
        return typical < TINY
    return typical < SMALL


def _input_size(facts: Facts, node: int) -> int:
    output = facts.graph.nodes[node].outputs[0]
    return elements(output.shape) if output else 1


SPACING = 2.0**-24
"""The distance between two subnormal numbers of float16."""

MOSTLY = 0.5
"""Share of a gradient among the subnormal numbers from which on zeros are taken for rounded."""


class HalfRounding:
    """The relative error of the gradient that each leaf got.

    ``leaves`` are these errors by node, 0 to 1; ``total`` is the error of all gradients together.
    ``start`` is the first node in backward at which a gradient that becomes so small does so, and
    ``small`` the share of it that is subnormal there.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.leaves: dict[int, float] = {}
        self.total = 0.0
        self.start: int | None = None
        self.small = 0.0
        backward = facts.backward
        if backward is None or not any(info.half for info in backward.gradients):
            return
        self._edges = [0.0] * len(facts.graph.edges)
        for node in range(len(facts.graph.nodes)):
            error = self._arriving(node)
            if facts.graph.nodes[node].kind == "leaf":
                self.leaves[node] = error
            else:
                self._send(node, error)
        self.total = self._of_all()
        if self.total:
            self._find_start()

    def _find_start(self) -> None:
        worst = max(self.leaves, key=self.leaves.__getitem__)
        # Ids are in the order of backward: what leads to the worst leaf is found from below.
        above, pending = {worst}, [worst]
        while pending:
            fresh = set(self.facts.above(pending.pop())) - above
            above |= fresh
            pending.extend(fresh)
        for node in sorted(above):
            shares = [_small(info) for target, info in self.facts.sent(node) if target in above]
            if max(shares, default=0.0) >= MOSTLY:
                self.start, self.small = node, max(shares)
                return

    def _arriving(self, node: int) -> float:
        """The error of what a node received."""
        facts, edges = self.facts, self._edges
        norm = math.hypot(*map(_size, facts.received(node)))
        if not norm:
            # It got nothing but zeros, or nothing.
            return max((edges[edge] for edge in facts.incoming[node]), default=0.0)
        errors = [edges[edge] * _size(self._on(edge)) for edge in facts.incoming[node]]
        return min(math.hypot(*errors) / norm, 1.0)

    def _send(self, node: int, error: float) -> None:
        mostly_small = any(_small(info) >= MOSTLY for info in self.facts.received(node))
        for edge in self.facts.outgoing[node]:
            info = self._on(edge)
            own = _rounding(info)
            if info.state == "zero" and info.dtype == "float16":
                lost = mostly_small and self.facts.op(node) in SCALING
                self._edges[edge] = 1.0 if lost or error == 1.0 else 0.0
            elif info.state == "finite":
                self._edges[edge] = min(math.hypot(error, own), 1.0)

    def _on(self, edge: int) -> GradientInfo:
        backward = self.facts.backward
        assert backward is not None
        return backward.on_edge(edge)

    def _of_all(self) -> float:
        """The error of all gradients as one vector; one that was lost counts as an average one."""
        norms = {leaf: math.hypot(*map(_size, self.facts.received(leaf))) for leaf in self.leaves}
        known = [norm for norm in norms.values() if norm]
        if not known:
            return 0.0
        mean = math.hypot(*known) / math.sqrt(len(known))
        lost = [leaf for leaf, norm in norms.items() if not norm and self.leaves[leaf] == 1.0]
        sizes = {leaf: norms[leaf] or mean for leaf in norms if norms[leaf] or leaf in lost}
        errors = (self.leaves[leaf] * size for leaf, size in sizes.items())
        return math.hypot(*errors) / math.hypot(*sizes.values())


def _size(info: GradientInfo) -> float:
    norm = 0.0 if info.norm is None else float(info.norm)
    return norm if math.isfinite(norm) else 0.0


def _small(info: GradientInfo) -> float:
    """The share of a gradient that is subnormal."""
    return 0.0 if info.half is None else float(info.half.small)


def _rounding(info: GradientInfo) -> float:
    """By how much of its norm a gradient is off for being subnormal."""
    size = _size(info)
    if info.half is None or not size:
        return 0.0
    return SPACING * math.sqrt(info.half.subnormal / 12) / size


def is_scaled(facts: Facts) -> bool:
    """Whether the root is a loss that a gradient scaler has scaled."""
    return facts.graph.scale is not None
