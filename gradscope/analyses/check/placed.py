"""The tape beside the graph: which call made which nodes, and what the program calls its operands.

Knows nothing of derivatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import torch

from gradscope.analyses.check.replay import needed
from gradscope.analyses.check.tape import Tape
from gradscope.autograd import saved
from gradscope.derivatives.call import OutsideValue, TapeSlot, is_usable
from gradscope.derivatives.double_precision import Unrepeatable, widened
from gradscope.derivatives.wide_function import real
from gradscope.graphing.study import LiveGraph
from gradscope.notation.operands import part_of_target


class TapedGraph:
    """One live graph and the calls behind it.

    ``positions`` gives the node of a sequence number, ``nodes`` those of a call, the one of its
    result first; ``roots`` are the roots that are on the tape.
    """

    def __init__(self, live: LiveGraph, tape: Tape) -> None:
        self.live = live
        self.tape = tape
        self.walked = live.probe.walked
        self.graph = live.probe.graph
        self.positions = self.walked.positions()
        found = ((tape.slot_of(root) or _leaf_slot(root), root) for root in live.roots)
        self.roots = {slot: root for slot, root in found if slot is not None}
        self.calls = needed(tape.taped, set(self.positions), self.roots)
        self.nodes = {call: call.nodes(self.positions) for call in self.calls}
        self.variables = [self.walked.nodes[leaf.node].variable for leaf in self.graph.leaves]  # type: ignore[attr-defined]

    def refuse(self, values: Mapping[TapeSlot, torch.Tensor], tolerance: float) -> None:
        """Differences of something else than the program say nothing of it.

        Raises:
            Unrepeatable: when the roots, made again, are not these.
        """
        for slot, root in self.roots.items():
            if slot not in values:
                raise Unrepeatable("its root depends on a call that could not be repeated")
            if not bool(root.isfinite().all()):
                raise Unrepeatable("its root is not finite")
            mine, theirs = real(values[slot].detach()), real(widened(root))
            scale = float(theirs.norm()) + 1e-6
            if not float((mine - theirs).norm()) <= 10 * tolerance * scale:
                raise Unrepeatable("run again in float64, its root has another value")

    # ------------------------------------------------------------------ names

    def name_of(self, slot: TapeSlot) -> str:
        """What the program calls the value in a slot, or ""."""
        given = slot.given
        if given is not None and given.leaf is not None:
            return self._leaf_names.get(id(given.leaf()), "")
        if slot in self._names:
            return self._names[slot]
        position = None if given is None else self.positions.get(given.node or -1)
        return "" if position is None else self._node_name(position)

    @cached_property
    def _names(self) -> dict[TapeSlot, str]:
        found: dict[TapeSlot, str] = {}
        for call in self.calls:
            whole = self._node_name(self.nodes[call][0]) if self.nodes[call] else ""
            for number, slot in enumerate(call.results):
                if slot is not None and whole:
                    found.setdefault(slot, part_of_target(whole, number, len(call.results)))
            if call.changed is not None and whole:
                found.setdefault(call.changed, whole)
        return found

    @cached_property
    def _leaf_names(self) -> dict[int, str]:
        pairs = zip(self.variables, self.graph.leaves, strict=True)
        return {id(variable): (leaf.names or ("",))[0] for variable, leaf in pairs}

    def _node_name(self, number: int) -> str:
        node = self.graph.nodes[number]
        origin = self.graph.origin_of(node)
        return node.variable or (origin.expression if origin else "") or f"#{number}"

    # ------------------------------------------------------------------ parts of the graph

    def unseen(self) -> Iterable[tuple[int, ...]]:
        """Nodes that no call on the tape made, those of one sort and place together."""
        covered = {node for nodes in self.nodes.values() for node in nodes}
        groups: dict[tuple[str, int | None], list[int]] = {}
        for node in self.graph.nodes:
            if node.kind != "leaf" and node.id not in covered:
                groups.setdefault((node.op, node.origin), []).append(node.id)
        return [tuple(nodes) for nodes in groups.values()]

    def behind(self, start: Iterable[int]) -> set[int]:
        """These nodes and all that backward comes to from them."""
        found = set(start)
        # Edges are sorted by their source, and lead to higher numbers only.
        for source, _, target, _ in self.walked.edges:
            if source in found:
                found.add(target)
        return found

    def leaves_behind(self, start: Iterable[int]) -> set[int]:
        """The leaves, by their numbers, that backward comes to from these nodes."""
        behind = self.behind(start)
        return {number for number, leaf in enumerate(self.graph.leaves) if leaf.node in behind}

    @cached_property
    def has_hooks(self) -> bool:
        """Whether a backward pass of ours would run hooks of the program."""
        is_hooked = self.tape.has_hooks or any(leaf._backward_hooks for leaf in self.variables)
        return is_hooked or any(map(saved.is_packed, self.walked.nodes))

    @cached_property
    def keeps_only_data(self) -> bool:
        """Whether the custom Functions in it keep nothing on ``ctx`` that a second pass would
        change for the program's."""
        return all(map(saved.keeps_only_data, self.walked.nodes))

    def leaf_slots(self) -> dict[int, list[TapeSlot]]:
        """For every leaf of the graph that the calls take, or that is a root, by its number, its
        slots on the tape."""
        numbers = {id(leaf): number for number, leaf in enumerate(self.variables)}
        found: dict[int, list[TapeSlot]] = {}
        taken = (slot for call in self.calls for slot in call.slots)
        for slot in dict.fromkeys((*self.roots, *taken)):
            leaf = slot.given.leaf() if slot.given is not None and slot.given.leaf else None
            if leaf is not None and id(leaf) in numbers:
                found.setdefault(numbers[id(leaf)], []).append(slot)
        return {number: found[number] for number in sorted(found)}


def _leaf_slot(root: Any) -> TapeSlot | None:
    """The slot of a leaf that is a root and that no call has taken."""
    is_plain = isinstance(root, torch.Tensor) and is_usable(root)
    return TapeSlot(OutsideValue.of(root)) if is_plain and root.is_leaf else None
