"""Where non-finite numbers are born: in the forward pass, and in the backward pass.

Born means: what went in was finite, what came out is not.  Everything after that is a consequence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from gradscope.model.observations import Intake
from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts
from gradscope.rules.questions.advice import FORWARD
from gradscope.rules.questions.ops import FILLS, MOVING, is_attention, is_maskable
from gradscope.walks import walk

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
        """What an operation moved, an operand of it held, although that was not looked at."""
        facts = self.facts
        for node in range(len(self.nan)):
            if not self.bad(node) or facts.op(node) not in MOVING:
                continue
            below = list(facts.below(node))
            if any(map(self.bad, below)):
                continue
            fills = [one for one in below if facts.op(one) in FILLS]
            for source in fills or below[:1] * (len(below) == 1):
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
        found, seen, pending = [], {node}, [node]
        while pending:
            for below in self.facts.below(pending.pop()):
                if below in seen:
                    continue
                seen.add(below)
                if self.bad(below):
                    found.append(below)
                elif self._same_call(below, node):
                    pending.append(below)
        return found

    def _same_call(self, one: int, other: int) -> bool:
        nodes = self.facts.graph.nodes
        return nodes[one].origin is not None and nodes[one].origin == nodes[other].origin

    def _inner(self, node: int) -> list[int]:
        """The other nodes of a composite call, in whose result a node ends; top down."""
        nodes = self.facts.graph.nodes
        found: list[int] = []
        pending = [node]
        while pending:
            for below in self.facts.below(pending.pop()):
                same = self._same_call(below, node)
                if same and nodes[below].op != nodes[node].op and below not in found:
                    found.append(below)
                    pending.append(below)
        return sorted(found)

    def behind(self, node: int) -> list[int]:
        """Where NaN in a node's result or operands was born in the forward pass."""
        start = node if self.nan[node] else self._result_of(node)
        seen = {start}
        pending, found = [start], []
        while pending:
            current = pending.pop()
            causes = [one for one in self.sources(current) if self.nan[one]]
            is_leaf = self.facts.graph.nodes[current].kind == "leaf"
            if not causes and self.nan[current] and not is_leaf and not self.took(current):
                found.append(current)
            fresh = [cause for cause in causes if cause not in seen]
            seen.update(fresh)
            pending.extend(fresh)
        return sorted(found, reverse=True)

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
        return adds and not intake.nan and (len(ops) == 1 or any(map(is_attention, ops)))

    def _result_of(self, node: int) -> int:
        """The result with NaN of the composite call in which a node lies, or the node itself."""
        seen, pending = {node}, [node]
        while pending:
            for above in self.facts.above(pending.pop()):
                if above in seen or not self._same_call(above, node):
                    continue
                if self.nan[above]:
                    return above
                seen.add(above)
                pending.append(above)
        return node

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
