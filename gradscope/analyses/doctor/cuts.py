"""Where gradient history ends: calls that take tensors with history and give some without.

Which leaves lie behind such a call is walked once a place, so that no graph is kept.  Knows nothing
of the Report's graph, only of sequence numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import leaves_behind, terms_of
from gradscope.autograd.summary import is_small
from gradscope.autograd.tensors import (
    TensorTable,
    grad_fn_of,
    is_leaf_tensor,
    is_learned_leaf,
    requires_grad,
)
from gradscope.model.observations import CutReason
from gradscope.recording.torch_call import TorchCall

MAX_CUTS = 2_000
"""Places that are remembered."""

MAX_FOLLOWED = 20_000
"""Results without history that are followed on their way."""

_NUMBERS = frozenset(
    ["item", "tolist", "numpy", "float", "int", "bool", "complex", "index", "array"]
)
_ADDING = frozenset(["add", "radd", "iadd", "sub", "rsub", "isub", "stack"])
# What these give is a shape, a text, a hook or a tensor of new content: nobody expects a gradient
# to come back through them.
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
    nodes took its result (``fed`` once one of them was in a watched graph).

    ``discrete``: its result is no floating-point number.  ``added``: nodes that added a single
    number made from its result to another (``summand`` once one of them was a term of a loss).
    ``then`` is what the same line turned the result into: ``numpy`` in ``x.detach().numpy()``.
    """

    place: int
    function: str
    reason: CutReason
    switched_at: int
    leaves: list[torch.Tensor]
    discrete: bool = False
    fed: bool = False
    summand: bool = False
    then: str = ""
    takers: set[int] = field(default_factory=set)
    added: set[int] = field(default_factory=set)


_Key = tuple[int, str, CutReason, int]
"""Place, function, reason, and where history was switched off: code may be called from several
places where it is."""


class Cuts:
    """All places that cut history."""

    def __init__(self) -> None:
        self.known: dict[_Key, KnownCut] = {}
        self._results: TensorTable[list[KnownCut]] = TensorTable(MAX_FOLLOWED)
        self._switched_at = -1
        self._used_inside: dict[int, torch.Tensor] = {}

    def note_switch(self, enabled: object, place: int) -> None:
        """The program has switched the recording of history on or off."""
        if not enabled:
            self._switched_at = place

    def note_inside(self, operands: Iterable[torch.Tensor]) -> None:
        """A call inside a custom Function, which always runs without history."""
        for tensor in operands:
            if is_learned_leaf(tensor) and len(self._used_inside) < MAX_FOLLOWED:
                # Held, for the few moments that the Function runs, so that no id is given away.
                self._used_inside[id(tensor)] = tensor

    def note_function(self, call: TorchCall) -> None:
        """A custom Function has returned: what was used inside it is behind its result."""
        inside, self._used_inside = self._used_inside, {}
        if not call.in_graph and inside and not all(map(requires_grad, call.results)):
            reason: CutReason = "checkpoint" if "Checkpoint" in call.function else "function"
            self._add(call, reason, lambda: list(inside.values()))

    def note_gradients(
        self, place: int, leaves: list[torch.Tensor], gradients: Iterable[Any]
    ) -> None:
        """``torch.autograd.grad`` has returned: without create_graph its results are a cut."""
        tensors = [item for item in gradients if isinstance(item, torch.Tensor)]
        if tensors and not any(map(requires_grad, tensors)):
            self._know((place, "grad", "function", -1), tensors, lambda: leaves)

    def note_data_set(self, call: TorchCall) -> None:
        """The program has given a tensor new numbers through ``.data``."""
        target, *values = call.operands
        computed = [tensor for tensor in values if grad_fn_of(tensor) is not None]
        if computed:
            key: _Key = (call.place, "data", "function", -1)
            self._know(key, [target], lambda: leaves_behind(computed))

    def note_rewrapped(self, place: int, parameter: torch.Tensor, source: torch.Tensor) -> None:
        """The program has made a Parameter of a tensor with history."""
        key: _Key = (place, "Parameter", "function", -1)
        self._know(key, [parameter], lambda: leaves_behind([source]))

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if self._results:
            self._follow(call)
        if call.in_graph or not any(map(requires_grad, call.operands)):
            return
        if call.function in _HARMLESS or not _gives_values(call):
            return
        with_history = [tensor for tensor in call.operands if requires_grad(tensor)]
        self._add(call, _reason(), lambda: leaves_behind(with_history))

    def feeds(self, tensors: Iterable[Any]) -> None:
        """These tensors were used where history is needed: what they come from has fed it."""
        for tensor in tensors:
            for cut in self._cuts_of(tensor):
                cut.fed = True

    def mark(self, sequences: Iterable[int], roots: Iterable[Any]) -> None:
        """Nodes with these sequence numbers are in a graph that backward walks from its roots."""
        waiting = [cut for cut in self.known.values() if cut.takers or cut.added]
        # This runs at every backward call, and only some programs have a cut that waits.
        walked = set(sequences) if waiting else set()
        terms = terms_of(roots) if any(cut.added for cut in waiting) else set()
        for cut in waiting:
            cut.fed = cut.fed or not cut.takers.isdisjoint(walked)
            cut.summand = cut.summand or not cut.added.isdisjoint(terms)
            cut.takers.clear()
            cut.added.clear()

    def start_step(self) -> None:
        """Forget results that have died."""
        self._results.forget_dead()

    def _add(
        self,
        call: TorchCall,
        reason: CutReason,
        behind: Callable[[], list[torch.Tensor]],
    ) -> None:
        switched = self._switched_at if reason == "no_grad" else -1
        self._know((call.place, call.function, reason, switched), call.results, behind)

    def _know(
        self,
        key: _Key,
        results: list[torch.Tensor],
        behind: Callable[[], list[torch.Tensor]],
    ) -> None:
        cut = self.known.get(key)
        if cut is None:
            if len(self.known) >= MAX_CUTS:
                return
            discrete = not any(_is_continuous(tensor) for tensor in results)
            cut = self.known[key] = KnownCut(*key, behind(), discrete)
        self._remember(results, [cut])

    def _follow(self, call: TorchCall) -> None:
        cuts = [cut for tensor in call.operands for cut in self._cuts_of(tensor)]
        if not cuts:
            return
        if call.in_graph:
            is_term = call.function in _ADDING and all(is_small(t, 1) for t in call.operands)
            for cut in cuts:
                if not cut.fed and len(cut.takers) < MAX_FOLLOWED:
                    cut.takers.add(call.sequence_range[1] - 1)
                if is_term and not cut.summand:
                    cut.added.add(call.sequence_range[1] - 1)
        elif call.function == "numpy":
            for cut in cuts:
                cut.then = cut.then or _if_same_line(call, cut.place)
        elif any(_is_continuous(tensor) for tensor in call.results):
            self._remember(call.results, cuts)
        else:
            # Past a sample, an index or a comparison no gradient could have come to this cut.
            self._remember(call.results, [cut for cut in cuts if cut.discrete])

    def _remember(self, results: Iterable[torch.Tensor], cuts: list[KnownCut]) -> None:
        for tensor in results:
            # Bounded: what is computed of much without history would carry the cuts of all of it.
            self._results[tensor] = cuts[:8]

    def _cuts_of(self, tensor: Any) -> list[KnownCut]:
        return self._results.get(tensor, [])


def _is_continuous(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _if_same_line(call: TorchCall, place: int) -> str:
    here, there = call.places.line(call.place), call.places.line(place)
    return call.function if here is not None and here == there else ""


def _reason() -> CutReason:
    # Asked first: in inference mode grad is switched off as well.
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "function" if torch.is_grad_enabled() else "no_grad"


def _gives_values(call: TorchCall) -> bool:
    """Whether the result depends on the elements of its operands, and has no history."""
    if not call.results:
        return call.function in _NUMBERS
    # A new leaf made of tensors with history (torch.tensor(list, requires_grad=True)) is cut too;
    # the very operand back is not.
    operands = {id(tensor) for tensor in call.operands}
    return not any(
        requires_grad(tensor) and (id(tensor) in operands or not is_leaf_tensor(tensor))
        for tensor in call.results
    )
