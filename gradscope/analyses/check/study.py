"""The check of one live graph: calls alone, then the whole program.

Says which single calls are checked, while the tape runs, and puts the parts together; the
comparisons themselves are in the other rooms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from msgspec.structs import replace

from gradscope import doing
from gradscope.analyses.check.leaves import CheckedLeaves
from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.replay import Replay
from gradscope.derivatives.call import Call, TapeSlot, made_again
from gradscope.derivatives.rerun import codes_of
from gradscope.derivatives.stale import own_gradients
from gradscope.derivatives.verdict import UNLIMITED, CallExamination, Limit
from gradscope.errors import RootError
from gradscope.graphing.study import LiveGraph, require_node
from gradscope.model.report import Graph
from gradscope.model.request import Check
from gradscope.model.studies import CallCheck, Checks, LeafCheck
from gradscope.words import either, option

FORGOTTEN = "there were too many calls to remember, so the older half was dropped"
UNSEEN = "no call of the program was seen to make it"


def study(live: LiveGraph, asked: Check) -> Checks:
    """Compare the derivatives of a graph with finite differences.

    Raises:
        RootError: when the node asked for does not exist, or is a leaf.
    """
    tape: Any = live.listener
    _refuse(asked.node, live.probe.graph)
    # Of torch's own Functions nothing is kept.
    with made_again(call for call in tape.taped if call.custom and codes_of(call.custom)):
        return _checked(TapedGraph(live, tape), asked)


def _refuse(node: int | None, graph: Graph) -> None:
    if node is None:
        return
    require_node(graph, node)
    if graph.nodes[node].kind == "leaf":
        node_option = either("--node", "node")
        raise RootError(
            f"node {node} is a leaf, which has no backward of its own",
            f"the whole program checks the gradient of every leaf: leave {node_option} out",
        )


def _checked(placed: TapedGraph, asked: Check) -> Checks:
    examined = CallChecks(placed, asked)
    writers = (call.name for call, one in examined.own.items() if one is not None and one.writes)
    leaves = CheckedLeaves(placed, writers) if asked.node is None else None
    replay = Replay(placed.calls, placed.roots)
    values = replay.run(visit=examined.visit)
    unseen = tuple(_unseen(placed, asked.node))
    unsure = _unsure((*examined.found.values(), *unseen))
    compared = Checks()
    if leaves is not None:
        compared = leaves.compared(replay, values, unsure, examined.half_readers)
    calls = (*_settled(placed, examined.found, compared.leaves), *examined.found_twice, *unseen)
    covered = sum(len(placed.nodes[call]) for call in placed.calls if call.is_backward)
    return replace(compared, calls=calls, repeats=examined.repeats, covered=covered)


def _settled(
    placed: TapedGraph, found: Mapping[Call, CallCheck], leaves: Sequence[LeafCheck]
) -> Iterator[CallCheck]:
    """The calls; none of torch's own is wrong where every leaf behind it is right."""
    good = {leaf for one in leaves if one.verdict in ("right", "rounding") for leaf in one.leaves}
    good -= {leaf for one in leaves if one.verdict == "wrong" for leaf in one.leaves}
    for call, told in found.items():
        behind = placed.leaves_behind(told.nodes) if told.verdict == "wrong" else set()
        if behind and behind <= good and call.is_torchs:
            yield replace(told, verdict="unresolved", reason=ONLY_ALONE)
        else:
            yield told


def _unseen(placed: TapedGraph, asked: int | None) -> Iterable[CallCheck]:
    reason = FORGOTTEN if placed.tape.has_forgotten else UNSEEN
    for nodes in placed.unseen():
        if asked is None or asked in nodes:
            op = placed.graph.nodes[nodes[0]].op
            yield CallCheck(nodes, op, "not checked", (), reason)


def _unsure(calls: Iterable[CallCheck]) -> Iterable[int]:
    """Nodes whose backward is made to differ, or that nothing on the tape stands for."""
    for check in calls:
        if check.verdict in ("meant", "random") or check.reason in (FORGOTTEN, UNSEEN):
            yield from check.nodes


LARGE = 10_000_000
"""Elements of all operands up to which a built-in call is checked unasked."""

MAX_CUSTOM = 200
"""Calls of custom Functions that are checked unasked."""

ONLY_ALONE = (
    "it differs when run alone, but not in the whole program, which does not depend on what the "
    "call leaves open (a sign, a basis)"
)


@dataclass
class CallChecks:
    """Which calls are checked, and what comes of that while the tape runs.

    Args:
        placed: the graph and its calls.
        asked: what the user wants to be checked.

    ``selected`` are the calls to check, with their nodes in the graph; ``repeats`` counts those
    left out because one at the same place is among them.  ``own`` are, of custom Functions, the
    gradients that the program's own node gives, if known.  ``found`` is what came of each call,
    ``found_twice`` of double backward; ``half_readers`` are the functions that were seen to read
    one triangle only of an operand.
    """

    placed: TapedGraph
    asked: Check
    repeats: int = 0
    found: dict[Call, CallCheck] = field(default_factory=dict)
    found_twice: list[CallCheck] = field(default_factory=list)
    half_readers: set[str] = field(default_factory=set)
    _met: set[tuple[Any, int]] = field(default_factory=set)
    _customs: int = 0

    def __post_init__(self) -> None:
        nodes = self.placed.nodes
        self.selected = {call: own for call, own in nodes.items() if self._takes(call, own)}
        # Asked before anything is run again, while the program's own state is as it left it.
        live = self.placed.walked.nodes
        self.own = {
            call: own_gradients(call, [live[n] for n in nodes])
            for call, nodes in self.selected.items()
        }
        # A custom Function before a backward pass that left a graph, which leads to the root.
        calls = self.placed.calls
        self._last = max((call.first for call in calls if call.is_backward), default=-1)

    def _takes(self, call: Call, nodes: tuple[int, ...]) -> bool:
        """Whether this call, which made these nodes, is to be checked."""
        if self.asked.node is not None:
            return self.asked.node in nodes
        if not nodes or call.is_backward:
            return False
        if self.asked.everything:
            return True
        if call.custom is not None and self._customs < MAX_CUSTOM:
            self._customs += 1
            return True
        key = (call.custom or call.function, call.place)
        is_new = key not in self._met
        self._met.add(key)
        self.repeats += not is_new
        return is_new

    def _limit(self, call: Call) -> Limit:
        """Beyond which size checking a call would take too long unasked."""
        asked = self.asked.everything or self.asked.node is not None
        return UNLIMITED if asked or call.custom is not None else Limit(LARGE, option("every-call"))

    def visit(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> None:
        """A call is about to be made again: check it, if it is one of those."""
        nodes = self.selected.get(call)
        if nodes is None:
            return
        doing.begin(f"checking call {len(self.found) + 1:,} of {len(self.selected):,}")
        own, limit = self.own.get(call), self._limit(call)
        one = CallExamination(call, operands, self.placed.name_of, own, limit)
        is_differentiated = call.custom is not None and call.first < self._last
        self.found[call], *twice = one.check(nodes, is_differentiated)
        self.found_twice += twice
        if one.reads_half:
            self.half_readers.add(call.name)
