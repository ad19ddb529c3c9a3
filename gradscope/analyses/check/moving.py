"""The whole program once more, with what backward holds fixed computed anew where a leaf moves.

Where history was cut, autograd holds the value fixed, and so do all other comparisons; the program
does not.  If its slope is another then, the cuts by which that comes are found by letting them go
in halves.  Knows nothing of how calls come on the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

import torch

from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.program import BUDGET, EXACT, WholeProgram
from gradscope.analyses.check.replay import Replay, needed
from gradscope.analyses.check.slots import differs
from gradscope.autograd.tensors import is_learned_leaf
from gradscope.derivatives.call import Call, TapeSlot
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.finite_differences import Judgement
from gradscope.model.plain import number
from gradscope.model.studies import CutPlace, CutShare, MovedCuts, MovedSlope

MOST = 8
"""Cuts that are told."""

MOST_CALLS = 2_000
"""Calls without history that are made again, some twenty times."""

SAME = 1e-9
"""What the roots of two runs differ by, at most, where nothing moves."""

MODES = ("no_grad", "inference_mode")
"""In these every call cuts: of several only the last is named."""

Places = tuple[CutPlace, ...]
Constants = list[TapeSlot]
"""What calls in the graph take without history, and what was cut there."""


class MovingProgram:
    """The program with cuts that are let go.

    Args:
        placed: the graph and its calls.
        held: the program as backward sees it.
        half_read: the numbers of those of which perhaps a triangle is read only.
    """

    def __init__(self, placed: TapedGraph, held: WholeProgram, half_read: Collection[int]) -> None:
        self._placed = placed
        self._held = held
        self._calls = placed.moving_calls
        # Those before the cuts that the graph ends at are of no graph, and always let go.
        taken = (slot for call in placed.calls for slot in call.slots)
        self._constants = dict.fromkeys(slot for slot in taken if slot.moving is not None)
        self._failed: dict[Call, str] = {}
        self._fixed: dict[TapeSlot, torch.Tensor] = {}
        self._variables: dict[int, torch.Tensor] = {}
        # Of a matrix of which a triangle is read the slope is another where all of it moves.
        self._compared = [one for one in held.slots if one not in half_read]

    def compared(self, work: int) -> MovedCuts | None:
        """Compare all leaves together, and where that differs each alone, as far as the budget for
        so many elements goes; None where no cut matters.

        Raises:
            Unrepeatable: when the program cannot be made again with its cuts let go.
        """
        more = len(self._calls) - len(self._placed.calls)
        if more > MOST_CALLS:
            what = f"{more:,} calls without history go into it"
            return MovedCuts(reason=f"{what}: too many to be made again some twenty times")
        if not self._leaves_behind(self._constants):
            return None
        self._begin()
        failed = ((call.name, why) for call, why in self._failed.items() if call.cut)
        said = (f"what {one} gave without history was held: {why}" for one, why in failed)
        reason = next(said, "")
        self._cuts = self._by_cuts()
        self._behind = self._leaves_behind(chain.from_iterable(self._cuts.values()))
        self._leaves = dict(self._movable())
        self._still, self._moving = self._let_go(()), self._let_go(self._cuts)
        own, found = self._slopes(list(self._leaves))
        if found.verdict != "wrong":
            return MovedCuts(reason=reason) if reason else None
        shares = tuple(self._shares(own, found))
        work *= len(self._calls) // max(len(self._placed.calls), 1)
        alone = [one for one in self._leaves if id(self._variables[one]) in self._behind]
        may_each = BUDGET // max(work, 1) >= 8 * len(alone)
        each = tuple(self._alone(alone)) if may_each else ()
        return MovedCuts(len(self._leaves), _slope(own, found), shares, each, reason)

    # ------------------------------------------------------------------ what moves

    def _begin(self) -> None:
        replay = Replay(self._calls, self._placed.roots)
        self._here = replay.run(visit=self._fix)
        self._failed = replay.failed
        self._placed.refuse(self._here, self._held.tolerance)
        again = replay.run()
        pairs = ((one, again[slot]) for slot, one in self._here.items())
        if not all(torch.allclose(*pair, rtol=SAME, atol=0) for pair in pairs):
            raise Unrepeatable("what was computed without history is another each time")

    def _by_cuts(self) -> dict[Places, Constants]:
        """The constants of the graph, by the cuts that they come through."""
        cuts = [call for call in self._calls if call.cut and call not in self._failed]
        made = {slot: call.place for call in cuts for slot in call.results if slot}
        by_place: dict[int, Constants] = {}
        for slot in self._constants:
            if slot.moving in made:
                by_place.setdefault(made[slot.moving], []).append(slot)
        found: dict[Places, Constants] = {}
        for slots in by_place.values():
            ends = [call for call in needed(cuts, set(), _moving(slots)) if call.inputs]
            last = next((call for call in reversed(ends) if call.cut in MODES), None)
            named = (call for call in ends if call.cut not in MODES or call is last)
            places = tuple(dict.fromkeys(map(self._place, named)))
            found.setdefault(places[-MOST:], []).extend(slots)
        return found

    def _leaves_behind(self, constants: Iterable[TapeSlot]) -> dict[int, torch.Tensor]:
        made = [call for call in self._calls if call not in self._failed]
        found = self._placed.slots_of_leaves(needed(made, set(), _moving(constants))).items()
        return {key: leaf for key, (leaf, slots) in found if _now(leaf, slots)}

    def _movable(self) -> Iterator[tuple[int, list[TapeSlot]]]:
        """The leaves of the graph as they are now, and those that lie behind cuts only: their
        numbers and slots."""
        of_graph = {id(one): number for number, one in enumerate(self._placed.variables)}
        more = len(of_graph)
        for key, (leaf, every) in self._placed.slots_of_leaves(self._calls).items():
            number, slots = of_graph.get(key, more), _now(leaf, every)
            is_behind = number == more and key in self._behind
            if slots and (is_behind or number in self._compared):
                self._variables[number] = leaf
                more += is_behind
                yield number, slots

    def _fix(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> None:
        """Note the constants of a call as they are computed where no leaf moves: in the program's
        own precision they are a little beside that."""
        for slot in call.slots:
            if slot in self._constants and slot not in self._fixed:
                self._fixed[slot] = operands(slot).clone()

    def _let_go(self, cuts: Iterable[Places]) -> WholeProgram:
        free = {slot for cut in cuts for slot in self._cuts[cut]}
        held = {slot: one for slot, one in self._fixed.items() if slot not in free}
        replay = Replay(self._calls, self._placed.roots, held)
        replay.failed.update(self._failed)
        program = WholeProgram(replay, self._held.upstream, self._here, self._leaves, EXACT)
        program.know(self._held.slopes)
        return program

    def _slopes(self, leaves: Sequence[int]) -> tuple[Judgement, Judgement]:
        """Those of the program as backward sees it, and as it is."""
        own = self._still.differences(leaves).judged
        return own, self._moving.differences(leaves, own.numeric).judged

    # ------------------------------------------------------------------ what comes of it

    def _shares(self, own: Judgement, all_free: Judgement) -> Iterator[CutShare]:
        """The cuts that matter, and those that do together only."""
        todo, told, moved = [(list(self._cuts), all_free)], 0, list(self._leaves)
        while todo and told < MOST:
            part, found = todo.pop()
            halves = (part[: len(part) // 2], part[len(part) // 2 :]) if len(part) > 1 else ()
            judged = (
                (half, self._let_go(half).differences(moved, own.numeric).judged) for half in halves
            )
            matter = [one for one in judged if one[1].verdict == "wrong"]
            todo += reversed(matter)
            if not matter:
                told += 1
                places = tuple(dict.fromkeys(place for cut in part for place in cut))
                slots = chain.from_iterable(self._cuts[cut] for cut in part)
                names = map(self._placed.called, self._leaves_behind(slots).values())
                yield CutShare(places[:MOST], number(found.numeric - own.numeric), tuple(names))

    def _alone(self, leaves: Iterable[int]) -> Iterator[MovedSlope]:
        for leaf in leaves:
            own, found = self._slopes([leaf])
            if found.verdict == "wrong":
                is_own = leaf < len(self._placed.graph.leaves)
                name = self._placed.called(self._variables[leaf])
                yield _slope(own, found, name, leaf if is_own else None)

    def _place(self, call: Call) -> CutPlace:
        recorder = self._placed.live.recorder
        site = recorder.places.site(call.place)
        if site is None:
            return CutPlace(call.name, call.cut)
        origin = recorder.sources.origin(site)
        return CutPlace(origin.expression or call.name, call.cut, origin.file, origin.line)


def _moving(slots: Iterable[TapeSlot]) -> list[TapeSlot]:
    return [slot.moving for slot in slots if slot.moving is not None]


def _now(leaf: torch.Tensor, slots: Iterable[TapeSlot]) -> list[TapeSlot]:
    """The slots that hold the leaf as it is; none of what has been frozen since."""
    known = [(slot, slot.given) for slot in slots if is_learned_leaf(leaf)]
    return [
        slot
        for slot, given in known
        if given and not given.is_lost and not differs(given.value, leaf.detach())
    ]


def _slope(own: Judgement, found: Judgement, name: str = "", leaf: int | None = None) -> MovedSlope:
    analytic, numeric = own.analytic, found.numeric
    largest = max(abs(analytic), abs(numeric))
    error = abs(analytic - numeric) / largest if largest else 0.0
    return MovedSlope(number(analytic), number(numeric), number(error), name, leaf)
