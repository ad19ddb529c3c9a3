"""The check of one live graph: calls alone, then the whole program.

Puts the parts together; the comparisons themselves are in the other rooms.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import torch

from gradscope.capture.again import codes_of, preserved, unheard
from gradscope.capture.checking.alone import dense_of, real
from gradscope.capture.checking.calls import Examined, Own, Selection, own_gradients
from gradscope.capture.checking.program import COARSE, TOLERANCES, LeafOnTape, Whole
from gradscope.capture.checking.replay import Replay, Unrepeatable, needed, widened
from gradscope.capture.checking.request import Check
from gradscope.capture.checking.slots import Slot
from gradscope.capture.checking.tape import HOOKED, Call, Tape
from gradscope.capture.flow import is_leaf
from gradscope.capture.study import Live
from gradscope.checks import CallCheck, Checks, LeafCheck
from gradscope.errors import SeedError
from gradscope.report import Node

FORGOTTEN = "the tape was full, and its older half was forgotten"
UNSEEN = "no call of the program was seen to make it"


def study(live: Live, asked: Check) -> Checks:
    """Compare the derivatives of a graph with finite differences.

    Raises:
        SeedError: when the node asked for does not exist, or is a leaf.
    """
    tape: Any = live.recorder
    _refuse(asked.node, live.probe.graph.nodes)
    with unheard(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        customs = {call.custom for call in tape.taped if call.custom and codes_of(call.custom)}
        try:
            with preserved(customs):
                return _Study(live, tape, asked).answer()
        finally:
            tape.close()


def _refuse(node: int | None, nodes: tuple[Node, ...]) -> None:
    if node is None:
        return
    if not 0 <= node < len(nodes):
        raise SeedError(
            f"there is no node {node}: the graph has {len(nodes)}",
            f"give --node 0 to {len(nodes) - 1}; they are the numbers behind # in the table",
        )
    if nodes[node].kind == "leaf":
        raise SeedError(
            f"node {node} is a leaf, which has no backward of its own",
            "the whole program checks the gradient of every leaf: leave --node out",
        )


class _Study:
    def __init__(self, live: Live, tape: Tape, asked: Check) -> None:
        self.live = live
        self.tape = tape
        self.asked = asked
        self.walked = live.probe.walked
        self.graph = live.probe.graph
        self.positions = {
            node._sequence_nr(): position
            for position, node in enumerate(self.walked.nodes)
            if not is_leaf(node)
        }
        self.roots = {slot: root for root in live.roots if (slot := tape.slot_of(root)) is not None}
        self.calls = needed(tape.taped, set(self.positions), self.roots)
        self.nodes = {call: self._nodes_of(call) for call in self.calls}
        self.names = self._names()

    def answer(self) -> Checks:
        """Everything."""
        selection = Selection(self.asked)
        selected = {c: nodes for c, nodes in self.nodes.items() if selection.takes(c, nodes)}
        own = {call: found for call in selected if (found := self._own(call)) is not None}
        # Asked before anything is run again, while the program's own state is as it left it.
        gradients, reason = self._own_gradients() if self.asked.node is None else (None, "")
        examined = Examined(selected, own, self._name, selection)
        replay = Replay(self.calls, self.roots)
        values = replay.run(visit=examined.visit)
        calls = [*examined.found, *self._unseen()]
        leaves: list[LeafCheck] = []
        if gradients is not None:
            leaves, reason = self._whole(replay, values, gradients, calls)
        covered = sum(len(self.nodes[call]) for call in self.calls if call.is_backward)
        return Checks(tuple(calls), tuple(leaves), selection.repeats, covered, reason)

    def _nodes_of(self, call: Call) -> tuple[int, ...]:
        made = range(call.first, call.end)
        return tuple(sorted(self.positions[one] for one in made if one in self.positions))

    def _own(self, call: Call) -> Own | None:
        if call.custom is None:
            return None
        return own_gradients(call, [self.walked.nodes[node] for node in self.nodes[call]])

    # ------------------------------------------------------------------ names

    def _names(self) -> dict[Slot, str]:
        found: dict[Slot, str] = {}
        for call in self.calls:
            for slot in (*call.results, call.changed):
                if slot is not None and self.nodes[call]:
                    found.setdefault(slot, self._node_name(self.nodes[call][0]))
        return found

    def _node_name(self, number: int) -> str:
        node = self.graph.nodes[number]
        return node.variable or self._written(node) or f"#{number}"

    def _written(self, node: Node) -> str:
        site = self.tape.site_of(self.walked.nodes[node.id]._sequence_nr())
        return "" if site is None else self.tape.sources.origin(site).expression

    def _name(self, slot: Slot) -> str:
        given = slot.given
        if given is None:
            return self.names.get(slot, "")
        if given.leaf is not None:
            return self._leaf_names.get(id(given.leaf()), "")
        if slot in self.names:
            return self.names[slot]
        position = self.positions.get(given.node or -1)
        return "" if position is None else self._node_name(position)

    @property
    def _leaf_names(self) -> dict[int, str]:
        return {
            id(self.walked.nodes[leaf.node].variable): (leaf.names or ("",))[0]  # type: ignore[attr-defined]
            for leaf in self.graph.leaves
        }

    # ------------------------------------------------------------------ what was not seen

    def _unseen(self) -> Iterable[CallCheck]:
        """Nodes that no call on the tape made, those of one sort and place together."""
        if self.asked.node is not None and any(
            self.asked.node in nodes for nodes in self.nodes.values()
        ):
            return
        covered = {node for nodes in self.nodes.values() for node in nodes}
        groups: dict[tuple[str, int | None], list[int]] = {}
        for node in self.graph.nodes:
            is_asked = self.asked.node in (None, node.id)
            if node.kind != "leaf" and node.id not in covered and is_asked:
                groups.setdefault((node.op, node.origin), []).append(node.id)
        reason = FORGOTTEN if self.tape.has_forgotten else UNSEEN
        for (op, _), nodes in groups.items():
            yield CallCheck(tuple(nodes), op, "not checked", (), reason)

    def _blocked(self, replay: Replay, calls: Iterable[CallCheck]) -> set[int]:
        """Nodes behind something that could not be made again, or whose backward is made to
        differ."""
        start = {node for call in replay.failed for node in self.nodes[call]}
        for check in calls:
            if check.verdict in ("meant", "random") or check.reason in (FORGOTTEN, UNSEEN):
                start.update(check.nodes)
        for call in self.calls:
            for slot in call.slots:
                if slot.given is not None and slot.given.node in self.positions:
                    start.add(self.positions[slot.given.node])
        return self._behind(start)

    def _behind(self, start: set[int]) -> set[int]:
        """These nodes and all that backward comes to from them."""
        found = set(start)
        # Edges are sorted by their source, and lead to higher numbers only.
        for source, _, target, _ in self.walked.edges:
            if source in found:
                found.add(target)
        return found

    # ------------------------------------------------------------------ the whole program

    def _own_gradients(self) -> tuple[list[torch.Tensor | None] | None, str]:
        """The gradients of all leaves by the program's own graph."""
        variables = [self.walked.nodes[leaf.node].variable for leaf in self.graph.leaves]  # type: ignore[attr-defined]
        if any("CheckpointFunction" in node.op for node in self.graph.nodes):
            return None, "a reentrant checkpoint allows no second backward pass"
        try:
            found = torch.autograd.grad(
                self.live.roots,
                variables,
                list(self.live.gradients),
                retain_graph=True,
                allow_unused=True,
            )
        except RuntimeError as error:
            return None, f"backward raised {str(error).strip().splitlines()[0]}"
        return list(found), ""

    def _whole(
        self,
        replay: Replay,
        values: dict[Slot, torch.Tensor],
        gradients: list[torch.Tensor | None],
        calls: list[CallCheck],
    ) -> tuple[list[LeafCheck], str]:
        weights = self._weights()
        if weights is None or any(slot not in values for slot in weights):
            return [], "the root could not be computed again"
        if not all(bool(root.isfinite().all()) for root in self.roots.values()):
            return [], "the root is not finite"
        if not self._same_roots(values):
            return [], "run again in float64 the root has another value"
        blocked = self._blocked(replay, calls)
        hooked = self._behind(self._hooked())
        slots = self._slots_of_leaves()
        leaves, missing = [], 0
        for number, (leaf, gradient) in enumerate(zip(self.graph.leaves, gradients, strict=True)):
            known = slots.get(number)
            if leaf.node in blocked or not known:
                missing += 1
                continue
            variable = self.walked.nodes[leaf.node].variable  # type: ignore[attr-defined]
            is_hooked = leaf.node in hooked or bool(variable._backward_hooks)
            dense = torch.zeros_like(variable) if gradient is None else dense_of(gradient)
            leaves.append(LeafOnTape(number, known, dense, is_hooked))
        work = sum(
            math.prod(tensor.shape)
            for node in self.graph.nodes
            for tensor in node.outputs
            if tensor
        )
        try:
            found = list(Whole(replay, weights, self._tolerance()).check(leaves, work))
        except Unrepeatable as error:
            return [], error.what
        if missing == len(self.graph.leaves):
            return found, "every leaf is behind a call that was not compared"
        which = "one leaf is" if missing == 1 else f"{missing} leaves are"
        return found, f"{which} behind a call that was not compared" * (missing > 0)

    def _hooked(self) -> set[int]:
        """Nodes at which a hook of the program may change a gradient."""
        found = {self.positions[one] for one in self.tape.hooked if one in self.positions}
        of_modules = (nodes for call, nodes in self.nodes.items() if call.custom is HOOKED)
        return found.union(*of_modules)

    def _weights(self) -> dict[Slot, torch.Tensor] | None:
        if len(self.roots) != len(self.live.roots):
            return None
        found = {}
        for (slot, root), given in zip(self.roots.items(), self.live.gradients, strict=True):
            found[slot] = widened(torch.ones_like(root) if given is None else given)
        return found

    def _same_roots(self, values: dict[Slot, torch.Tensor]) -> bool:
        tolerance = 10 * self._tolerance()
        for slot, root in self.roots.items():
            mine, theirs = real(values[slot].detach()), real(widened(root))
            scale = float(theirs.norm()) + 1e-6
            if not float((mine - theirs).norm()) <= tolerance * scale:
                return False
        return True

    def _slots_of_leaves(self) -> dict[int, list[Slot]]:
        numbers = {
            id(self.walked.nodes[leaf.node].variable): number  # type: ignore[attr-defined]
            for number, leaf in enumerate(self.graph.leaves)
        }
        found: dict[int, list[Slot]] = {}
        for slot in dict.fromkeys(slot for call in self.calls for slot in call.slots):
            if slot.given is not None and slot.given.leaf is not None:
                number = numbers.get(id(slot.given.leaf()))
                if number is not None:
                    found.setdefault(number, []).append(slot)
        return found

    def _tolerance(self) -> float:
        """What the coarsest tensor of the graph leaves of a derivative."""
        names = {tensor.dtype for node in self.graph.nodes for tensor in node.outputs if tensor}
        known = {str(kind).removeprefix("torch."): one for kind, one in TOLERANCES.items()}
        known["complex64"] = TOLERANCES[torch.float32]
        return max((known.get(name, COARSE) for name in names), default=COARSE)
