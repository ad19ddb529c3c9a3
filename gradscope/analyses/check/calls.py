"""Single calls: which are checked, while the tape runs.

Knows nothing of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from gradscope import doing
from gradscope.analyses.check.request import Check
from gradscope.derivatives.call import Call
from gradscope.derivatives.slots import TapeSlot
from gradscope.derivatives.stale import Own
from gradscope.derivatives.verdict import UNLIMITED, CallExamination, Limit
from gradscope.model.checks import CallCheck
from gradscope.words import option

LARGE = 10_000_000
"""Elements of all operands up to which a built-in call is checked unasked."""

MAX_CUSTOM = 200
"""Calls of custom Functions that are checked unasked."""

ONLY_ALONE = (
    "it differs when run alone, but not in the whole program, which does not depend on what the "
    "call leaves open (a sign, a basis)"
)


class Selection:
    """Which calls are checked.

    ``repeats`` counts those left out because one at the same place is.
    """

    def __init__(self, asked: Check) -> None:
        self._asked = asked
        self._met: set[tuple[Any, int]] = set()
        self._customs = 0
        self.repeats = 0

    def takes(self, call: Call, nodes: tuple[int, ...]) -> bool:
        """Whether this call, which made these nodes, is to be checked."""
        if self._asked.node is not None:
            return self._asked.node in nodes
        if not nodes or call.is_backward:
            return False
        if self._asked.everything:
            return True
        if call.custom is not None and self._customs < MAX_CUSTOM:
            self._customs += 1
            return True
        key = (call.custom or call.function, call.place)
        is_new = key not in self._met
        self._met.add(key)
        self.repeats += not is_new
        return is_new

    def limit(self, call: Call) -> Limit:
        """Beyond which size checking a call would take too long unasked."""
        asked = self._asked.everything or self._asked.node is not None
        return UNLIMITED if asked or call.custom is not None else Limit(LARGE, option("all"))


class CallChecks:
    """Checks calls while the tape runs.

    Args:
        selected: the calls to check, with their nodes in the graph.
        own: of custom Functions the gradients that the program's own node gives, if known.
        name_of: what the program calls an operand.
        selection: says what is too large.
        differentiated: custom Functions whose gradient the program differentiates.

    ``found`` is what came of each call, ``found_twice`` of double backward; ``half_readers`` are
    the functions that were seen to read one triangle only of an operand.
    """

    def __init__(
        self,
        selected: Mapping[Call, tuple[int, ...]],
        own: Mapping[Call, Own | None],
        name_of: Callable[[TapeSlot], str],
        selection: Selection,
        differentiated: Collection[Call] = (),
    ) -> None:
        self.found: dict[Call, CallCheck] = {}
        self.found_twice: list[CallCheck] = []
        self._differentiated = differentiated
        self.half_readers: set[str] = set()
        self._selected = selected
        self._own = own
        self._name_of = name_of
        self._selection = selection

    def visit(self, call: Call, operands: Callable[[TapeSlot], torch.Tensor]) -> None:
        """A call is about to be made again: check it, if it is one of those."""
        nodes = self._selected.get(call)
        if nodes is None:
            return
        doing.still(f"checking call {len(self.found) + 1:,} of {len(self._selected):,}")
        own, limit = self._own.get(call), self._selection.limit(call)
        one = CallExamination(call, operands, self._name_of, own, limit)
        first = self.found[call] = one.check(nodes)
        twice = call in self._differentiated and first.verdict in ("right", "kink")
        second = one.check_twice(nodes) if twice else None
        if second is not None:
            self.found_twice.append(second)
        if one.reads_half:
            self.half_readers.add(call.name)
