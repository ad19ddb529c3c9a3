"""The whole program once more, with what backward holds fixed computed anew where a leaf moves.

Where history was cut, autograd holds the value fixed, and so do all other comparisons; the program
does not.  If its slope is another then, the cuts by which that comes are found by letting them move
in halves.  Knows nothing of how calls come on the tape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.program import BUDGET, LeafOnTape, WholeProgram
from gradscope.analyses.check.replay import Replay
from gradscope.analyses.check.slots import differs
from gradscope.autograd.tensors import is_learned_leaf
from gradscope.derivatives.call import Call, OutsideValue, TapeSlot
from gradscope.derivatives.finite_differences import Judgement
from gradscope.model.plain import number
from gradscope.model.studies import CutPlace, CutShare, MovedCuts, MovedLeaf
from gradscope.words import count

MOST = 8
"""Cuts that are named, and calls that are named together."""

MODES = ("no_grad", "inference_mode")
"""In these every call cuts: of those after one another only the last is named."""

Roots = tuple[Call, ...]
"""Calls that cut history."""


class _Descent(NamedTuple):
    """How constants come from leaves: through which cuts, and from which leaves, as bits."""

    cuts: Roots = ()
    leaves: int = 0

    def __or__(self, other: _Descent) -> _Descent:
        cuts = tuple(dict.fromkeys((*self.cuts, *other.cuts)))
        return _Descent(cuts[-MOST:], self.leaves | other.leaves)


@dataclass
class _HeldTogether:
    """Constants that come through the same cuts, which are let go or held together."""

    way: _Descent
    slots: list[TapeSlot] = field(default_factory=list)


def moved_cuts(
    placed: TapedGraph, held: WholeProgram, leaves: Sequence[LeafOnTape], work: int
) -> MovedCuts | None:
    """What backward does not see of a program; None where nothing was cut, or it does not matter.

    Args:
        placed: the graph and its calls.
        held: the program as backward sees it.
        leaves: those that can be compared.
        work: elements that the program computes.
    """
    calls = placed.moving_calls
    if not any(call.cut for call in calls):
        return None
    candidates = list(_movable(placed, calls, leaves, held))
    numbers = {slot: one.number for one in candidates for slot in one.slots}
    cuts = _cuts(calls, set(placed.calls), numbers)
    reached = _Descent()
    for cut in cuts:
        reached |= cut.way
    own = len(placed.graph.leaves)
    moved = [one for one in candidates if one.number < own or reached.leaves >> one.number & 1]
    if not reached.leaves:
        return None
    program = _MovingProgram(placed, held, calls, cuts, moved)
    return program.compared(work * len(calls) // max(len(placed.calls), 1))


def _movable(
    placed: TapedGraph, calls: Iterable[Call], leaves: Iterable[LeafOnTape], held: WholeProgram
) -> Iterator[LeafOnTape]:
    """The leaves behind calls, as they are now: also those that the graph does not have."""
    known = {id(placed.variables[one.number]): one for one in leaves}
    own = set(map(id, placed.variables))
    more = len(own)
    for key, (leaf, every) in placed.slots_of_leaves(calls).items():
        slots = [one for one in every if is_learned_leaf(leaf) and _is_now(one.given, leaf)]
        found = known.get(key)
        if not slots or (key in own and found is None):
            continue
        if found is None:
            yield LeafOnTape(more, slots, torch.zeros_like(leaf.detach()))
            more += 1
        # A call may read a part of it only, and its slope is another where that moves alone.
        elif found.number not in held.half_readers:
            yield replace(found, slots=slots)


def _is_now(given: OutsideValue | None, leaf: torch.Tensor) -> bool:
    return given is not None and not given.is_lost and not differs(given.value, leaf.detach())


def _cuts(
    calls: Iterable[Call], in_graph: Collection[Call], numbers: Mapping[TapeSlot, int]
) -> list[_HeldTogether]:
    """What the calls in the graph take without history, by the cuts that it comes through."""
    ways = {slot: _Descent((), 1 << one) for slot, one in numbers.items()}
    found: dict[tuple[tuple[int, str], ...], _HeldTogether] = {}
    for call in calls:
        way = _Descent()
        for slot in call.slots:
            known = (slot, slot.base) if slot.moving is None else (slot.moving, slot.moving.base)
            came = next((ways[one] for one in known if one in ways), _Descent())
            way |= came
            if came.cuts and came.leaves and slot.moving is not None and call in in_graph:
                key = tuple((one.place, one.cut) for one in came.cuts)
                found.setdefault(key, _HeldTogether(_Descent())).slots.append(slot)
                found[key].way |= came
        if call.cut and call.inputs:
            way = _Descent((call,) if call.cut in MODES else (*way.cuts, call), way.leaves)
        elif not call.cut:
            way = _Descent((), way.leaves)
        changed = () if call.changed is None else (call.changed, call.changed.base)
        for slot in changed:
            ways[slot] = ways.get(slot, _Descent()) | way
        ways.update((slot, way) for slot in call.results if slot and slot not in changed)
    return list(found.values())


class _MovingProgram:
    """The program with cuts that are let go.

    Raises:
        Unrepeatable: when a leaf has been changed.
    """

    def __init__(
        self,
        placed: TapedGraph,
        held: WholeProgram,
        calls: Sequence[Call],
        cuts: list[_HeldTogether],
        leaves: Sequence[LeafOnTape],
    ) -> None:
        self._placed = placed
        self._calls = calls
        self._cuts = cuts
        self._leaves = leaves
        self._held = held
        own = {slot for call in placed.calls for slot in call.slots}
        taken = {slot for call in calls for slot in call.slots if slot.moving is not None}
        self._inner = frozenset(taken - own)
        held.know(leaves)
        self._reached = 0
        for cut in cuts:
            self._reached |= cut.way.leaves

    def compared(self, work: int) -> MovedCuts | None:
        """Compare all leaves together, and where that differs each alone as far as the budget
        goes."""
        replay = self._let_go(self._cuts)
        values = replay.run()
        failed = {call: why for call, why in replay.failed.items() if call.cut}
        reason = ""
        if failed:
            many = count(len(failed), "call")
            why = next(iter(failed.values()))
            reason = (
                f"{many} without history cannot be run again, and what came of it was held: {why}"
            )
        if not all(bool(torch.isfinite(values[slot]).all()) for slot in self._held.weights):
            return None
        moving = replace(self._held, replay=replay, values=values)
        moving.know(self._leaves)
        own = self._held.differences(self._leaves)
        found = moving.differences(self._leaves, own.numeric)
        if found.verdict != "wrong":
            return MovedCuts(reason=reason) if reason else None
        return MovedCuts(
            len(self._leaves),
            number(own.analytic),
            number(found.numeric),
            number(found.error),
            tuple(self._shares(moving, own, found)),
            tuple(self._alone(moving, work)),
            reason,
        )

    def _let_go(self, cuts: Iterable[_HeldTogether]) -> Replay:
        free = self._inner.union(*(cut.slots for cut in cuts))
        return Replay(self._calls, self._placed.roots, free)

    def _shares(
        self, moving: WholeProgram, own: Judgement, all_free: Judgement
    ) -> Iterator[CutShare]:
        """The cuts that matter alone, and those that do together only, by halving."""
        todo = [(self._cuts, all_free)]
        told = 0
        while todo and told < MOST:
            part, judged = todo.pop()
            halves = [part[: len(part) // 2], part[len(part) // 2 :]] if len(part) > 1 else []
            each = [(half, self._slope(moving, half, own)) for half in halves]
            matter = [one for one in each if one[1].verdict == "wrong"]
            todo += reversed(matter)
            if not matter:
                told += 1
                yield self._told(part, judged.numeric - own.numeric)

    def _slope(self, moving: WholeProgram, cuts: list[_HeldTogether], own: Judgement) -> Judgement:
        replay = self._let_go(cuts)
        some = replace(moving, replay=replay, values=replay.run())
        some.know(self._leaves)
        return some.differences(self._leaves, own.numeric)

    def _alone(self, moving: WholeProgram, work: int) -> Iterator[MovedLeaf]:
        behind = [one for one in self._leaves if self._reached >> one.number & 1]
        if BUDGET // max(work, 1) < 8 * len(behind):
            return
        for leaf in behind:
            own = self._held.differences([leaf])
            found = moving.differences([leaf], own.numeric)
            if found.verdict == "wrong":
                graph = self._placed.graph.leaves
                place = leaf.number if leaf.number < len(graph) else None
                numbers = map(number, (own.analytic, found.numeric, found.error))
                yield MovedLeaf(self._name(leaf), place, *numbers)

    # ------------------------------------------------------------------ names

    def _told(self, part: list[_HeldTogether], share: float) -> CutShare:
        way = _Descent()
        for cut in part:
            way |= cut.way
        places = dict.fromkeys(map(self._place, way.cuts))
        names = [self._name(one) for one in self._leaves if way.leaves >> one.number & 1]
        return CutShare(tuple(places), number(share), tuple(names))

    def _place(self, call: Call) -> CutPlace:
        recorder = self._placed.live.recorder
        site = recorder.places.site(call.place)
        if site is None:
            return CutPlace(call.name, call.cut)
        origin = recorder.sources.origin(site)
        return CutPlace(origin.expression or call.name, call.cut, origin.file, origin.line)

    def _name(self, leaf: LeafOnTape) -> str:
        given = leaf.slots[0].given
        tensor = given.leaf() if given is not None and given.leaf is not None else None
        return "" if tensor is None else self._placed.called(tensor)
