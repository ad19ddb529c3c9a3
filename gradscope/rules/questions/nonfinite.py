"""Where non-finite numbers are born, in the forward pass and in the backward pass; what a finding
says of them.

Born means: what went in was finite, what came out is not.  Everything after that is a consequence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from gradscope.model.observations import Intake
from gradscope.model.plain import in_rows
from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts, elements, short
from gradscope.rules.questions.advice import FORWARD
from gradscope.rules.questions.ops import (
    ACCUMULATING,
    FILLS,
    GROWING,
    MEETING,
    PASSING,
    is_attention,
    is_maskable,
)
from gradscope.walks import walk
from gradscope.words import count

MOST = 5
"""Sources that are told apart; with more, one cause behind them all was not seen."""


class ForwardSources:
    """The sources in the forward pass that reach a root."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.nan = [
            any(out is not None and out.nan for out in n.outputs) for n in facts.graph.nodes
        ]
        self.inf = [
            any(out is not None and out.inf for out in n.outputs) for n in facts.graph.nodes
        ]
        for leaf in facts.graph.leaves:
            self.nan[leaf.node] |= leaf.tensor.nan > 0
            self.inf[leaf.node] |= leaf.tensor.inf > 0
        self.intakes: dict[int, list[Intake]] = {}
        for intake in facts.seen.intakes:
            self.intakes.setdefault(intake.node, []).append(intake)
        # What happened inside a call that took such an operand was not seen; a mask makes no NaN.
        spans = {(one.node, _first(one)) for one in facts.seen.intakes if not self._masks(one)}
        self._inside = {node for start, end in spans for node in range(start + 1, end + 1)}
        self._look_through()
        self.meant = self._meant()
        self.roots = [root.node for root in facts.graph.roots if self.bad(root.node)]
        self.born: list[int] = []
        self.taken: list[Intake] = []
        self.leaves: list[int] = []
        self.affected = 0
        self._came: dict[int, int] = {}
        self._search(masks_pass=True)
        if self.roots and all(self.meant[root] for root in self.roots):
            # A mask has come as far as the loss: then where it was written is the place.
            self._search(masks_pass=False)

    def bad(self, node: int) -> bool:
        """Whether a node's result is known to hold NaN or infinity."""
        return self.nan[node] or self.inf[node]

    def _look_through(self) -> None:
        """What an operation passed on, an operand of it held: what does only that is not read, nor
        is infinity that is meant as a mask, but by what makes NaN of it."""
        facts = self.facts
        for node in range(len(self.nan)):
            if not self.bad(node) or facts.op(node) not in PASSING or node in self.intakes:
                continue
            below = list(facts.below(node))
            fills = [one for one in below if facts.op(one) in FILLS]
            for source in () if any(map(self.bad, below)) else fills or below[: len(below) == 1]:
                # A leaf was read itself.
                if source not in facts.leaf_names:
                    self.nan[source], self.inf[source] = self.nan[node], self.inf[node]

    def _meant(self) -> list[bool]:
        """Nodes whose infinities the program wrote itself, or that pass such infinities on."""
        facts, meant = self.facts, [False] * len(self.nan)
        # What a bad parameter has spoilt is no mask, whatever else is written into it.
        names = set(facts.leaf_names.values())
        taken = {one.node for one in facts.seen.intakes if one.name in names}
        spoilt = [node.kind == "leaf" or node.id in taken for node in facts.graph.nodes]
        for node in range(len(meant) - 1, -1, -1):
            if not self.bad(node):
                continue
            sources = self.sources(node)
            spoilt[node] |= any(spoilt[source] for source in sources)
            if self.nan[node] or spoilt[node]:
                continue
            op = facts.op(node)
            masks = all(map(self._masks, self.intakes.get(node, ())))
            meant[node] = (op in FILLS and not self._inner(node)) or (
                all(meant[source] for source in sources)
                and bool(sources or (masks and node in self.intakes))
            )
        return meant

    def sources(self, node: int) -> list[int]:
        """The operands of a node that are not finite.

        What a node inside a composite operation computed was not seen; it is looked through.
        """

        def onwards(one: int) -> list[int]:
            if one != node and self.bad(one):
                return []
            below = list(self.facts.below(one))
            # Which is last is met first: in the order of the operands a way to the loss is chosen.
            return [at for at in below[::-1] if self.bad(at) or self._same_call(at, node)]

        return [one for one in walk([node], onwards) if one != node and self.bad(one)]

    def _same_call(self, one: int, other: int) -> bool:
        nodes = self.facts.graph.nodes
        return nodes[one].origin is not None and nodes[one].origin == nodes[other].origin

    def _inner(self, node: int) -> list[int]:
        """The other nodes of a composite call, in whose result a node ends; top down."""
        nodes = self.facts.graph.nodes

        def inside(one: int) -> list[int]:
            below = (at for at in self.facts.below(one) if nodes[at].op != nodes[node].op)
            return [at for at in below if self._same_call(at, node)]

        return sorted(walk(inside(node), inside))

    def behind(self, node: int) -> list[int]:
        """Where NaN in a node's result or operands was born in the forward pass."""

        def causes(one: int) -> list[int]:
            return [source for source in self.sources(one) if self.nan[source]]

        start = node if self.nan[node] else self._result_of(node)
        ends = (one for one in walk([start], causes) if self.nan[one] and not causes(one))
        leaves = self.facts.leaf_names
        return sorted(
            (one for one in ends if one not in leaves and not self.took(one)), reverse=True
        )

    def took(self, node: int) -> list[Intake]:
        """What was not finite and had no history when the call that made a node took it."""
        return [one for one in self._taken_by_call(node) if not self._masks(one)]

    def masks(self, node: int) -> list[Intake]:
        """The masks without history that the call took which made a node."""
        return [one for one in self._taken_by_call(node) if self._masks(one)]

    def _taken_by_call(self, node: int) -> list[Intake]:
        return [one for one in self.facts.seen.intakes if one.node <= node <= _first(one)]

    def _masks(self, intake: Intake) -> bool:
        """Whether an operand may be a mask of infinities, by what the call did that took it."""
        ops = [self.facts.op(node) for node in range(intake.node, _first(intake) + 1)]
        adds = any(map(is_maskable, ops))
        # A recurrent layer adds as well; only a softmax makes a mask of it.
        is_mask = not intake.nan and not intake.positive
        return adds and is_mask and (len(ops) == 1 or any(map(is_attention, ops)))

    def _result_of(self, node: int) -> int:
        """The result with NaN of the composite call in which a node lies, or the node itself."""
        return next((one for one in self._upwards(node) if self.nan[one]), node)

    def counted(self, node: int) -> int:
        """The node whose result was counted: of a composite call that of the last."""
        nodes = self.facts.graph.nodes
        for one in self._upwards(node):
            if any(out is not None and (out.nan or out.inf) for out in nodes[one].outputs):
                return one
        return node

    def _upwards(self, node: int) -> Iterable[int]:
        """A node and those above it that the same call made, the nearest first."""

        def same(one: int) -> list[int]:
            return [above for above in self.facts.above(one) if self._same_call(above, node)]

        return walk([node], same, nearest=True)

    def way(self, node: int) -> list[int]:
        """From a source up to a root along what is not finite, without the source itself."""
        found = []
        while node in self._came:
            node = self._came[node]
            found.append(node)
        return found

    def guilty(self, node: int) -> int:
        """The node to name for a source: of a composite call only the result was seen, and it may
        well end in a mean or a sum."""
        if self.facts.op(node) in FORWARD:
            return node
        known = [one for one in self._inner(node) if self.facts.op(one) in FORWARD]
        unseen = [one for one in known if not self.bad(one)]
        return unseen[-1] if unseen else node

    def overflows(self, node: int) -> bool:
        """Whether what a node made is a number too large for float16."""
        op = self.facts.op(node)
        # NaN is an overflow only where sums of both signs have met on the way.
        grows = op in GROWING and (self.inf[node] or op in MEETING)
        return grows and is_half(self.facts, node)

    def hides_overflow(self, node: int) -> bool:
        """Whether a product or sum in float16 became infinite, and then was divided by."""
        is_lone = self.inf[node] and not (self.roots or self.nan[node] or self.meant[node])
        is_own = is_lone and not self.sources(node) and node not in self.intakes
        return is_own and self.facts.op(node) in ACCUMULATING and is_half(self.facts, node)

    def _search(self, masks_pass: bool) -> None:
        """From the roots down along what is not finite, masks left out or not."""
        self.born, self.taken, self.leaves = [], [], []
        self._came = {}
        seen = set(self.roots)
        pending = deque(self.roots)
        while pending:
            node = pending.popleft()
            causes = [
                source for source in self.sources(node) if not (masks_pass and self.meant[source])
            ]
            taken = [i for i in self.intakes.get(node, ()) if not (masks_pass and self._masks(i))]
            if self.facts.graph.nodes[node].kind == "leaf":
                self.leaves.append(node)
            elif taken:
                self.taken.extend(taken)
            elif not causes and node not in self._inside:
                self.born.append(node)
            fresh = [cause for cause in causes if cause not in seen]
            self._came.update(dict.fromkeys(fresh, node))
            seen.update(fresh)
            pending.extend(fresh)
        self.affected = len(seen)
        self.born.sort(reverse=True)


def _first(intake: Intake) -> int:
    return intake.node if intake.first is None else intake.first


class BackwardSources:
    """The sources in the backward pass that reach a leaf.

    ``born`` are they in backward order, each with the leaves that it spoils; a hook of the program
    may have mended what arrives at others.  ``born_unseen`` are the leaves that were spoilt where
    nobody looked.
    """

    def __init__(self, facts: Facts) -> None:
        self.born: dict[int, list[str]] = {}
        self.born_unseen: list[str] = []
        backward = facts.backward
        if backward is None or not any(map(_is_bad, backward.gradients)):
            return
        spoilt = [leaf for leaf in facts.leaf_names if any(map(_is_bad, facts.received(leaf)))]

        def onwards(node: int) -> Iterable[int]:
            sent = facts.sent(node)
            return [target for target, info in sent if _is_bad(info) or info.is_unread]

        for node in range(len(facts.graph.nodes)):
            bad = [target for target, info in facts.sent(node) if _is_bad(info)]
            if bad and not any(map(_is_bad, facts.received(node))):
                below = set(walk(bad, onwards))
                names = [facts.leaf_names[leaf] for leaf in spoilt if leaf in below]
                self.born.update({node: names} if names else {})
        is_given = any(_is_bad(backward.gradients[entry]) for entry in backward.seeds)
        if not self.born and not is_given and any(info.is_unread for info in backward.gradients):
            self.born_unseen = [facts.leaf_names[leaf] for leaf in spoilt]


def _is_bad(info: GradientInfo) -> bool:
    return info.state == "non-finite"


def loss_is_bad(facts: Facts) -> bool:
    """Whether the loss is NaN or infinity, wherever it became so."""
    return bool(facts.graph.roots) and isinstance(facts.loss, str)


def left_out(facts: Facts) -> dict[int, int]:
    """NaN of the forward pass that the loss does not contain, by the node that made it: the node
    whose backward meets it."""
    forward = facts.once(ForwardSources)
    if forward.roots or loss_is_bad(facts):
        return {}
    born = facts.once(BackwardSources).born
    return {cause: node for node in reversed(born) for cause in forward.behind(node)}


# ---------------------------------------------------------------- in words


def is_half(facts: Facts, node: int) -> bool:
    """Whether the first half precision among a node's results is float16."""
    dtypes = [out.dtype for out in facts.graph.nodes[node].outputs if out is not None]
    return next((one for one in dtypes if one in ("float16", "bfloat16")), "") == "float16"


def amounts(nan: int, inf: int) -> list[str]:
    """``["3 NaN", "14 infinite"]``, without what there is none of."""
    return [f"{nan:,} NaN"] * (nan > 0) + [f"{inf:,} infinite"] * (inf > 0)


def counts(forward: ForwardSources, nodes: list[int]) -> list[str]:
    """How many elements of a result are not finite: ``Log: 14 of 256 elements infinite``."""
    facts, node = forward.facts, forward.counted(nodes[0])
    lines = [
        f"{facts.op(node)}: {', '.join(amounts(output.nan, output.inf))} of "
        f"{count(elements(output.shape), 'element')}, {output.dtype}{in_rows([output.rows])}"
        for output in facts.graph.nodes[node].outputs
        if output is not None and (output.nan or output.inf)
    ]
    if len(nodes) > 1:
        lines.append(f"the same happens {len(nodes):,} times at this place")
    return lines


def aftermath(forward: ForwardSources) -> str:
    """What became of the loss, and of how many results before it."""
    loss = forward.facts.loss
    said = f"the loss is {loss}, " if isinstance(loss, str) else ""
    return f"{said}{count(forward.affected, 'node')} on the way to it not finite"


def turned(facts: Facts, node: int) -> str:
    """What a node received, and how much that is not finite it made of it, in which rows."""
    norm = next((info.norm for info in facts.received(node) if info.norm is not None), None)
    bad = [info for _, info in facts.sent(node) if info.state == "non-finite"]
    nan, inf = sum(info.nan for info in bad), sum(info.inf for info in bad)
    known = [info for info in bad if info.rows]
    # Another operand may have got it everywhere, or is one number.
    rows = in_rows(info.rows for info in known)
    if rows and len(known) < len(bad):
        rows = f", {sum(info.nan + info.inf for info in known):,} of them{rows.removeprefix(',')}"
    sent = f"{nan:,} NaN and {inf:,} infinite elements{rows}"
    return f"received {short(norm)} (2-norm), sent {sent}"
