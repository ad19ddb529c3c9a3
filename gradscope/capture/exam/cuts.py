"""Where gradient history ends: calls that take tensors with history and give some without.

Which leaves lie behind such a call is walked once a place, so that no graph is kept.  Knows nothing
of the Report's graph, only of sequence numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradscope.capture.seen import Seen
from gradscope.observations import CutReason

MAX_CUTS = 2_000
"""Places that are remembered."""

MAX_BEHIND = 4_000
"""Nodes that are walked from one cut."""

MAX_FOLLOWED = 20_000
"""Results without history that are followed on their way."""

_NUMBERS = frozenset(
    ["item", "tolist", "numpy", "float", "int", "bool", "complex", "index", "array"]
)
_HARMLESS = frozenset(
    [
        "grad",
        "requires_grad_",
        "retain_grad",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "new_empty_strided",
        "shape",
        "size",
        "repr",
        "format",
        "str",
        "len",
        "hash",
        "set_",
        "__reduce_ex__",
        "deepcopy",
    ]
)


@dataclass
class KnownCut:
    """A place that cut: which function there, why, which leaves lay behind its operands, and which
    nodes took its result (``fed`` once one of them was in a watched graph)."""

    place: int
    function: str
    reason: CutReason
    switched_at: int
    leaves: list[torch.Tensor]
    fed: bool = False
    takers: set[int] = field(default_factory=set)


class Cuts:
    """All places that cut history."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str, str], KnownCut] = {}
        self._results: dict[int, tuple[weakref.ref[torch.Tensor], list[KnownCut]]] = {}
        self._switched_at = -1
        self._used_inside: dict[int, torch.Tensor] = {}

    def note_switch(self, enabled: object, place: int) -> None:
        """The program has switched the recording of history on or off."""
        if not enabled:
            self._switched_at = place

    def note_inside(self, operands: Iterable[torch.Tensor]) -> None:
        """A call inside a custom Function, which always runs without history."""
        for tensor in operands:
            if tensor.requires_grad and tensor.is_leaf and len(self._used_inside) < MAX_FOLLOWED:
                self._used_inside[id(tensor)] = tensor

    def note_function(self, seen: Seen) -> None:
        """A custom Function has returned: what was used inside it is behind its result."""
        inside, self._used_inside = self._used_inside, {}
        if not seen.in_graph and inside and any(not t.requires_grad for t in seen.results):
            reason: CutReason = "checkpoint" if "Checkpoint" in seen.function else "function"
            self._add(seen, reason, lambda: list(inside.values()))

    def note(self, seen: Seen) -> None:
        """Look at one call."""
        if self._results:
            self._follow(seen)
        if seen.in_graph or not any(tensor.requires_grad for tensor in seen.operands):
            return
        if seen.function in _HARMLESS or not _gives_values(seen):
            return
        with_history = [tensor for tensor in seen.operands if tensor.requires_grad]
        self._add(seen, _reason(), lambda: leaves_behind(with_history))

    def feeds(self, tensors: Iterable[Any]) -> None:
        """These tensors were used where history is needed: what they come from has fed it."""
        for tensor in tensors:
            for cut in self._cuts_of(tensor):
                cut.fed = True

    def mark(self, sequences: Iterable[int]) -> None:
        """Nodes with these sequence numbers are in a graph that backward walks."""
        waiting = [cut for cut in self.known.values() if cut.takers]
        walked = set(sequences) if waiting else set()
        for cut in waiting:
            cut.fed = cut.fed or not cut.takers.isdisjoint(walked)
            cut.takers.clear()

    def start_step(self) -> None:
        """Forget results that have died."""
        self._results = {key: kept for key, kept in self._results.items() if kept[0]() is not None}

    def _add(
        self,
        seen: Seen,
        reason: CutReason,
        behind: Callable[[], list[torch.Tensor]],
    ) -> None:
        key = (seen.place, seen.function, reason)
        cut = self.known.get(key)
        if cut is None:
            if len(self.known) >= MAX_CUTS:
                return
            switched = self._switched_at if reason == "no_grad" else -1
            cut = KnownCut(seen.place, seen.function, reason, switched, behind())
            self.known[key] = cut
        self._remember(seen.results, [cut])

    def _follow(self, seen: Seen) -> None:
        cuts = [cut for tensor in seen.operands for cut in self._cuts_of(tensor)]
        if not cuts:
            return
        if seen.in_graph:
            for cut in cuts:
                if not cut.fed and len(cut.takers) < MAX_FOLLOWED:
                    cut.takers.add(seen.made[1] - 1)
        else:
            self._remember(seen.results, cuts)

    def _remember(self, results: Iterable[torch.Tensor], cuts: list[KnownCut]) -> None:
        for tensor in results:
            if len(self._results) < MAX_FOLLOWED:
                self._results[id(tensor)] = (weakref.ref(tensor), cuts[:8])

    def _cuts_of(self, tensor: Any) -> list[KnownCut]:
        known = self._results.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else []


def _reason() -> CutReason:
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "function" if torch.is_grad_enabled() else "no_grad"


def _gives_values(seen: Seen) -> bool:
    """Whether the result depends on the elements of its operands, and has no history."""
    if not seen.results:
        return seen.function in _NUMBERS
    # A new leaf made of tensors with history (torch.tensor(list, requires_grad=True)) is cut too;
    # the very operand back is not.
    operands = {id(tensor) for tensor in seen.operands}
    return not any(
        tensor.requires_grad and (id(tensor) in operands or not tensor.is_leaf)
        for tensor in seen.results
    )


def leaves_behind(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves from which some tensors were computed, as far as a bounded walk sees."""
    found: dict[int, torch.Tensor] = {}
    seen: dict[Any, None] = {}
    stack: list[Any] = []
    for tensor in tensors:
        if tensor.grad_fn is None:
            found[id(tensor)] = tensor
        else:
            stack.append(tensor.grad_fn)
    while stack and len(seen) < MAX_BEHIND:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[id(variable)] = variable
        stack.extend(target for target, _ in node.next_functions if target is not None)
    return list(found.values())
